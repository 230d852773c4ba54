// Contract 7: bundles in a folder, which all gateways and workers share (`BUNDLES_URL=file:<folder>`).
import { createReadStream } from 'node:fs';
import { chmod, mkdir, open, rename, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { type BundleStore, MissingBundle, verified } from './bundle-store.ts';

const DIGEST = /^[0-9a-f]{64}$/;
/** Workers may read as another user of the same group. */
const FILE_MODE = 0o644;

export class FileBundleStore implements BundleStore {
  readonly incoming: string;
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = resolve(folder);
    this.incoming = join(this.#folder, 'incoming');
  }

  async put(file: string, digest: string): Promise<void> {
    const target = this.#path(digest);
    await mkdir(join(target, '..'), { recursive: true });
    await chmod(file, FILE_MODE);
    await flushed(file);
    await rename(file, target);
    await flushed(join(target, '..'));
  }

  async get(digest: string): Promise<Readable> {
    const path = this.#path(digest);
    await stat(path).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? new MissingBundle(digest, error) : error;
    });
    return verified(createReadStream(path), digest);
  }

  /** Returns the path of a bundle. Folders by the first two digits keep each folder small. */
  #path(digest: string): string {
    if (!DIGEST.test(digest)) throw new Error(`${digest} is not a digest`);
    return join(this.#folder, digest.slice(0, 2), digest);
  }
}

/** Writes a file or folder to the disk, because a version must never name a bundle that a power cut has removed. */
async function flushed(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
