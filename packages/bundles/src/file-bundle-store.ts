// Contract 7: bundles in a folder, which all gateways and workers share (`BUNDLES_URL=file:<folder>`).
import { createReadStream } from 'node:fs';
import { chmod, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { type BundleStore, MissingBundle, type StoredBundle, verified } from './bundle-store.ts';

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
    const known = await stat(target).catch(() => undefined);
    if (known) {
      const now = new Date();
      await utimes(target, now, now);
      await rm(file, { force: true });
      return;
    }
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

  async *list(): AsyncGenerator<StoredBundle> {
    for (const part of await names(this.#folder)) {
      if (part.length !== 2) continue;
      for (const digest of await names(join(this.#folder, part))) {
        if (!DIGEST.test(digest)) continue;
        const found = await stat(this.#path(digest)).catch(() => undefined);
        if (found) yield { digest, writtenAt: found.mtimeMs };
      }
    }
  }

  async remove(digest: string): Promise<void> {
    await rm(this.#path(digest), { force: true });
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

const names = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
