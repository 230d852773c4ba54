// Contract 7, "Deploy a version": receives a bundle. The bytes go to a file and through the hash while they arrive, never into memory as a whole.
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { type BundleStore, type Inspected, inspectBundle } from '@inference-proxy/bundles';
import { MANIFEST_FILES, NODE_ENTRYPOINTS, PYTHON_ENTRYPOINT, ServiceError } from '@inference-proxy/contracts';
import { hasBody } from '../http/request-head.ts';

/** Uploads that a gateway receives at a time. Each needs a file and, for its check, a core. */
const MOST_UPLOADS = 8;

/** `package.json` may name the entry point. The worker reports a wrong name. */
const ENTRY_FILES = [PYTHON_ENTRYPOINT, ...NODE_ENTRYPOINTS, 'package.json'];

export interface UploadLimits {
  /** `MAX_BUNDLE_BYTES`. */
  readonly maxBytes: number;
  /** Time in which a bundle must arrive, ms. */
  readonly timeoutMs: number;
}

/** A bundle in the bundle store. */
export interface StoredUpload extends Inspected {
  /** SHA-256 of the archive. */
  readonly digest: string;
  /** Bytes of the archive. */
  readonly size: number;
}

export class Uploads {
  #open = 0;

  readonly #store: BundleStore;
  readonly #limits: UploadLimits;

  constructor(store: BundleStore, limits: UploadLimits) {
    this.#store = store;
    this.#limits = limits;
  }

  /**
   * Receives the request's body, checks the bundle, and writes it to the bundle store. A rejected bundle leaves no file.
   *
   * @throws ServiceError `payload_too_large`, `invalid_bundle`, `invalid_request`, `overloaded`, `unavailable`
   */
  async receive(raw: ServerResponse): Promise<StoredUpload> {
    if (!hasBody(raw.req.headers)) throw new ServiceError('invalid_bundle', 'The request has no body; send a .tar.gz.');
    if (this.#open >= MOST_UPLOADS)
      throw new ServiceError('overloaded', 'The gateway receives too many bundles; try again.');
    this.#open += 1;
    const file = join(this.#store.incoming, randomBytes(16).toString('hex'));
    try {
      await storing(mkdir(this.#store.incoming, { recursive: true }));
      const { digest, size } = await this.#write(raw, file);
      const names = { manifests: MANIFEST_FILES, entries: ENTRY_FILES };
      const inspected = await storing(inspectBundle(createReadStream(file), names));
      await storing(this.#store.put(file, digest));
      return { ...inspected, digest, size };
    } finally {
      this.#open -= 1;
      await rm(file, { force: true });
    }
  }

  #write(raw: ServerResponse, path: string): Promise<{ digest: string; size: number }> {
    const { req } = raw;
    const { maxBytes, timeoutMs } = this.#limits;
    const tooLarge = () => new ServiceError('payload_too_large', `The bundle is over ${maxBytes} bytes.`);
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge());
    if (req.destroyed) return Promise.reject(endedEarly());
    if (req.headers.expect !== undefined) raw.writeContinue();
    const hash = createHash('sha256');
    const file = createWriteStream(path, { mode: 0o600 });
    let size = 0;
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        req.off('data', onData).off('end', onEnd).off('close', onClose);
      };
      // The request is not destroyed, because the caller must be able to read the error.
      const fail = (error: unknown): void => {
        settle();
        req.pause();
        file.destroy();
        reject(error);
      };
      const onData = (chunk: Buffer): void => {
        size += chunk.length;
        if (size > maxBytes) {
          fail(tooLarge());
          return;
        }
        hash.update(chunk);
        if (!file.write(chunk)) req.pause();
      };
      const onEnd = (): void => {
        settle();
        file.end(() => resolve({ digest: hash.digest('hex'), size }));
      };
      const onClose = (): void => fail(endedEarly());
      const timer = setTimeout(
        () => fail(new ServiceError('invalid_request', 'The bundle did not arrive in time.')),
        timeoutMs,
      );
      file.on('drain', () => req.resume());
      file.on('error', (error) => fail(notStored(error)));
      // The 'close' event follows every error of the request.
      req
        .on('data', onData)
        .on('end', onEnd)
        .on('close', onClose)
        .on('error', () => {});
    });
  }
}

const endedEarly = (): ServiceError => new ServiceError('invalid_request', 'The bundle ended early.');

const notStored = (cause: unknown): ServiceError =>
  new ServiceError('unavailable', 'The bundle store did not take the bundle; try again later.', { cause });

/** Returns the value of a step. An error of the bundle store or of the disk becomes `unavailable`. */
async function storing<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    throw error instanceof ServiceError ? error : notStored(error);
  }
}
