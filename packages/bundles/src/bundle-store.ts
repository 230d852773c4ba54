// Contract 7: the store of bundles. A bundle's name is the SHA-256 of its bytes, so a bundle never changes.
import { createHash } from 'node:crypto';
import { type Readable, Transform } from 'node:stream';

/** A digest is the SHA-256 of an archive's bytes, 64 hex digits. Every method may throw a {@link BundleStoreError}. */
export interface BundleStore {
  /** Begins to store a bundle. No reader sees its bytes before {@link BundleWriter.commit}. */
  write(): Promise<BundleWriter>;
  /** Returns the bytes of a bundle. The stream fails with {@link DamagedBundle} at its end if the bytes have another digest. */
  get(digest: string): Promise<Readable>;
  /** Returns the digests of all stored bundles, in any order. */
  list(): AsyncIterable<string>;
  /** Removes a bundle. A repeat does no harm. */
  remove(digest: string): Promise<void>;
  /** Removes the bytes of writes that were neither committed nor aborted, because a gateway has died. Returns their number. */
  removeInterrupted(olderThanMs: number): Promise<number>;
}

/** One bundle that is being stored. Its owner ends it with `commit` or `abort`. */
export interface BundleWriter {
  /** Takes bytes. The chunk may be reused after the promise has resolved. */
  write(chunk: Buffer): Promise<void>;
  /** Stores the bytes under their digest. A repeat of the same bundle replaces the stored bytes, which may be damaged. */
  commit(digest: string): Promise<void>;
  /** Removes the bytes. Never rejects: `removeInterrupted` removes what stays. Does nothing after `commit`. */
  abort(): Promise<void>;
}

/** The bundle store cannot do its work now. The message has no address and no credential, because callers of the service see it. */
export class BundleStoreError extends Error {
  /** @param cause for the log */
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'BundleStoreError';
  }
}

/** The bundle is not in the store. */
export class MissingBundle extends Error {
  constructor(digest: string, cause?: unknown) {
    super(`the bundle ${digest} is not in the bundle store`, { cause });
    this.name = 'MissingBundle';
  }
}

/** The store returned other bytes than were stored. */
export class DamagedBundle extends Error {
  constructor(digest: string, found: string) {
    super(`the bundle ${digest} is damaged in the bundle store: its bytes have the digest ${found}`);
    this.name = 'DamagedBundle';
  }
}

const DIGEST = /^[0-9a-f]{64}$/;

export const isDigest = (text: string): boolean => DIGEST.test(text);

/** Returns `digest`. @throws Error if the text is not a digest, because it would name another object of the store */
export function checkedDigest(digest: string): string {
  if (!isDigest(digest)) throw new Error(`${digest} is not a digest`);
  return digest;
}

/** Returns the bytes of `source`. The stream fails at its end if their SHA-256 is not `digest`. */
export function verified(source: Readable, digest: string): Readable {
  const hash = createHash('sha256');
  const check = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
    flush(done) {
      const found = hash.digest('hex');
      done(found === digest ? null : new DamagedBundle(digest, found));
    },
  });
  source.once('error', (error) => check.destroy(error));
  check.once('close', () => source.destroy());
  return source.pipe(check);
}
