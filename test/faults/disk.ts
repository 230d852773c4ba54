// A full disk, or a disk that takes no more of one file. As root, Redis' folder is a small tmpfs that is filled. Elsewhere its server may
// write no file beyond a size (RLIMIT_FSIZE, which needs no rights). For Redis both are a write that fails after a part was written.
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RedisBinary } from '@inference-proxy/supervisor';

const run = promisify(execFile);
/** Twice the bytes that the load writes in half an hour. */
const TMPFS_SIZE = '512m';
/** The message of Linux for a full file system. */
const FULL = 'ENOSPC';

export interface Disk {
  /** The folder of Redis' data. */
  readonly dir: string;
  /** Runs Redis so that a file's size limit is an error, and does not end the process. */
  wrap(binary: RedisBinary): Promise<RedisBinary>;
  /** Limits the process to files of the current size of its append-only file plus this many bytes. */
  limit(pid: number, options?: { spare?: number; data?: string }): Promise<void>;
  unlimit(pid: number): Promise<void>;
  /** Fills the disk to the last byte. @param data the folder of Redis' data, `dir` by default @returns a function that frees the space */
  fill(pid: number, data?: string): Promise<() => Promise<void>>;
  /** The append-only file that Redis currently writes. */
  appendOnlyFile(): Promise<string>;
  close(): Promise<void>;
}

/** Bytes that a full disk still takes: the rest of the last block. */
const REST_OF_BLOCK = 50;

/** Returns the append-only file that a Redis with its data in `dir` currently writes. */
export async function appendOnlyFileIn(dir: string): Promise<string> {
  const folder = join(dir, 'appendonlydir');
  const files = (await readdir(folder)).filter((name) => name.endsWith('.incr.aof'));
  // Each rewrite begins another file, with the next number.
  return join(folder, files.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1) ?? '');
}

export async function openDisk(): Promise<Disk> {
  const dir = await mkdtemp(join(tmpdir(), 'disk-'));
  const isOwn = await run('mount', ['-t', 'tmpfs', '-o', `size=${TMPFS_SIZE}`, 'tmpfs', dir]).then(
    () => true,
    () => false,
  );
  const setLimit = async (pid: number, bytes: number | 'unlimited'): Promise<void> => {
    await run('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);
  };
  const limit: Disk['limit'] = async (pid, { spare = 0, data = dir } = {}) =>
    setLimit(pid, (await stat(await appendOnlyFileIn(data))).size + spare);
  const unlimit = (pid: number): Promise<void> => setLimit(pid, 'unlimited');
  const wrapper = join(dir, 'redis-server.sh');
  return {
    dir,
    async wrap(binary) {
      // The shell ignores the signal, and the program that replaces the shell inherits this.
      await writeFile(wrapper, `#!/bin/sh\ntrap '' XFSZ\nexec '${binary.path}' "$@"\n`);
      await chmod(wrapper, 0o755);
      return { ...binary, path: wrapper };
    },
    limit,
    unlimit,
    async fill(pid, data = dir) {
      if (!isOwn) {
        await limit(pid, { spare: REST_OF_BLOCK, data });
        return () => unlimit(pid);
      }
      const filler = join(dir, 'filler');
      for (const size of [1024 * 1024, 4096]) {
        const block = Buffer.alloc(size, 1);
        let is = '';
        while (is !== FULL) {
          is = await writeFile(filler, block, { flag: 'a' }).then(
            () => '',
            (error: NodeJS.ErrnoException) => error.code ?? error.message,
          );
          if (is !== '' && is !== FULL) throw new Error(`the disk was not filled: ${is}`);
        }
      }
      return () => rm(filler);
    },
    appendOnlyFile: () => appendOnlyFileIn(dir),
    async close() {
      if (isOwn) await run('umount', ['-l', dir]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}
