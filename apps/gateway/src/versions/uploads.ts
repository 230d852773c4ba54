// Contract 7, "Deploy a version": receives a bundle. The bytes go through the hash, the check and into the bundle store while they arrive.
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { type BundleStore, BundleStoreError, type Inspected, inspectBundle } from '@inference-proxy/bundles';
import { MANIFEST_FILES, NODE_ENTRYPOINTS, PYTHON_ENTRYPOINT, ServiceError } from '@inference-proxy/contracts';
import { hasBody } from '../http/request-head.ts';
import { bundleBody, type UploadLimits } from './bundle-body.ts';

/** Uploads that a gateway receives at a time. Each needs memory for a part of the bundle and, for its check, a core. */
const MOST_UPLOADS = 8;

/** `package.json` may name the entry point. The worker reports a wrong name. */
const ENTRY_FILES = [PYTHON_ENTRYPOINT, ...NODE_ENTRYPOINTS, 'package.json'];

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
   * Receives the request's body, checks the bundle, and writes it to the bundle store. A rejected bundle leaves nothing in the store.
   *
   * @throws ServiceError `payload_too_large`, `invalid_bundle`, `invalid_request`, `overloaded`, `unavailable`
   */
  async receive(raw: ServerResponse): Promise<StoredUpload> {
    if (!hasBody(raw.req.headers)) throw new ServiceError('invalid_bundle', 'The request has no body; send a .tar.gz.');
    if (this.#open >= MOST_UPLOADS)
      throw new ServiceError('overloaded', 'The gateway receives too many bundles; try again.');
    this.#open += 1;
    try {
      return await this.#receive(bundleBody(raw, this.#limits));
    } catch (error) {
      throw error instanceof ServiceError ? error : notStored(error);
    } finally {
      this.#open -= 1;
    }
  }

  async #receive(body: AsyncGenerator<Buffer>): Promise<StoredUpload> {
    const writer = await this.#store.write();
    const hash = createHash('sha256');
    let size = 0;
    const names = { manifests: MANIFEST_FILES, entries: ENTRY_FILES };
    // The check ends `stored` early if the bundle breaks a rule. It does not end the body.
    const stored = async function* (): AsyncGenerator<Buffer> {
      for (let next = await body.next(); !next.done; next = await body.next()) {
        size += next.value.length;
        hash.update(next.value);
        await writer.write(next.value);
        yield next.value;
      }
    };
    try {
      const inspected = await inspectBundle(stored(), names);
      const digest = hash.digest('hex');
      await writer.commit(digest);
      return { ...inspected, digest, size };
    } catch (error) {
      await writer.abort();
      // Most callers read no answer before they have sent the whole body.
      if (error instanceof ServiceError && error.code === 'invalid_bundle') for await (const _ of body);
      throw error;
    } finally {
      await body.return(undefined);
    }
  }
}

/** Returns the answer for an error of the bundle store. The reason has no address and no key. */
const notStored = (cause: unknown): ServiceError => {
  const reason = cause instanceof BundleStoreError ? `: ${cause.message}` : '';
  return new ServiceError('unavailable', `The bundle store did not take the bundle${reason}. Try again later.`, {
    cause,
  });
};
