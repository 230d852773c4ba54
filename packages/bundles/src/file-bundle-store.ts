// Contract 7: bundles in a folder, which all gateways and workers share (`BUNDLES_URL=file:<folder>`).
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import {
  type BundleStore,
  BundleStoreError,
  type BundleWriter,
  checkedDigest,
  isDigest,
  MissingBundle,
  verified,
} from './bundle-store.ts';

/** Workers may read as another user of the same group. */
const FILE_MODE = 0o644;
const PREFIX = /^[0-9a-f]{2}$/;

export class FileBundleStore implements BundleStore {
  readonly #folder: string;
  /** Files that are being written. The folder is on the file system of the store, so that a file can be moved. */
  readonly #incoming: string;

  constructor(folder: string) {
    this.#folder = resolve(folder);
    this.#incoming = join(this.#folder, 'incoming');
  }

  async write(): Promise<BundleWriter> {
    const path = join(this.#incoming, randomBytes(16).toString('hex'));
    const file = await onDisk(async () => {
      await mkdir(this.#incoming, { recursive: true });
      return open(path, 'wx', FILE_MODE);
    });
    return new FileWriter(path, file, (digest) => this.#path(digest));
  }

  async get(digest: string): Promise<Readable> {
    const path = this.#path(digest);
    await stat(path).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? new MissingBundle(digest, error) : diskError(error);
    });
    return verified(createReadStream(path), digest);
  }

  async *list(): AsyncGenerator<string> {
    for (const prefix of await namesIn(this.#folder))
      if (PREFIX.test(prefix))
        for (const name of await namesIn(join(this.#folder, prefix))) if (isDigest(name)) yield name;
  }

  async remove(digest: string): Promise<void> {
    const path = this.#path(digest);
    await onDisk(() => rm(path, { force: true }));
  }

  async removeInterrupted(olderThanMs: number): Promise<number> {
    let removed = 0;
    for (const name of await namesIn(this.#incoming)) {
      const path = join(this.#incoming, name);
      // A file that is gone has been committed or aborted.
      const { mtimeMs = Number.POSITIVE_INFINITY } = (await stat(path).catch(() => undefined)) ?? {};
      if (mtimeMs > Date.now() - olderThanMs) continue;
      await onDisk(() => rm(path, { force: true }));
      removed++;
    }
    return removed;
  }

  /** Returns the path of a bundle. Folders by the first two digits keep each folder small. */
  #path(digest: string): string {
    return join(this.#folder, checkedDigest(digest).slice(0, 2), digest);
  }
}

class FileWriter implements BundleWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #targetOf: (digest: string) => string;

  constructor(path: string, file: FileHandle, targetOf: (digest: string) => string) {
    this.#path = path;
    this.#file = file;
    this.#targetOf = targetOf;
  }

  async write(chunk: Buffer): Promise<void> {
    await onDisk(async () => {
      for (let at = 0; at < chunk.length; ) at += (await this.#file.write(chunk, at)).bytesWritten;
    });
  }

  async commit(digest: string): Promise<void> {
    const target = this.#targetOf(digest);
    await onDisk(async () => {
      await mkdir(join(target, '..'), { recursive: true });
      await this.#file.sync();
      await this.#file.close();
      await rename(this.#path, target);
      await flushed(join(target, '..'));
    });
  }

  async abort(): Promise<void> {
    await this.#file.close().catch(() => {});
    await rm(this.#path, { force: true }).catch(() => {});
  }
}

/** Writes a folder to the disk, because a version must never name a bundle that a power cut has removed. */
async function flushed(folder: string): Promise<void> {
  const file = await open(folder, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Returns the names in a folder. A folder that does not exist has none. */
const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw diskError(error);
  });

/** The message has the error's code, but not the path. */
const diskError = (error: NodeJS.ErrnoException): BundleStoreError =>
  new BundleStoreError(`the folder of the bundle store cannot be used (${error.code ?? error.name})`, error);

async function onDisk<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw diskError(error as NodeJS.ErrnoException);
  }
}
