// Contract 7: the store of bundles. A bundle's name is the SHA-256 of its bytes, so a bundle never changes.
import { createHash } from 'node:crypto';
import { type Readable, Transform } from 'node:stream';

/** A digest is the SHA-256 of an archive's bytes, 64 hex digits. */
export interface BundleStore {
  /** Folder for files that will be put. It is on the same file system as the store, if the store has one. */
  readonly incoming: string;
  /** Stores a file under its digest. The file may be moved. A repeat replaces the stored bytes, which may be damaged. */
  put(file: string, digest: string): Promise<void>;
  /** Returns the bytes of a bundle. The stream fails with {@link DamagedBundle} at its end if the bytes have another digest. */
  get(digest: string): Promise<Readable>;
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
