// Contract 7, "Deploy a version": packs an app's folder into a .tar.gz, and computes the name of its version.
import { createHash } from 'node:crypto';
import { createReadStream, lstatSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { create } from 'tar';

const OWNER_EXECUTES = 0o100;

/**
 * Returns the version's name: SHA-256 over the sorted list of files with path, executable bit and content hash.
 *
 * @param files paths relative to the folder
 */
export async function versionName(folder: string, files: readonly string[]): Promise<string> {
  const lines = new Map<string, string>();
  for (const path of files) lines.set(path, await lineOf(folder, path));
  const whole = createHash('sha256');
  // The order of the bytes is not the order of UTF-16 units.
  const sorted = [...lines.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const path of sorted) whole.update(`${lines.get(path)}\n`);
  return whole.digest('hex');
}

async function lineOf(folder: string, path: string): Promise<string> {
  const place = join(folder, path);
  const found = lstatSync(place);
  const hash = createHash('sha256');
  if (found.isSymbolicLink()) return `${path}\0l\0${hash.update(readlinkSync(place)).digest('hex')}`;
  await pipeline(createReadStream(place), hash);
  return `${path}\0${found.mode & OWNER_EXECUTES ? 'x' : '-'}\0${hash.digest('hex')}`;
}

/** An archive on disk. */
export interface Archive {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Removes the archive. */
  remove(): void;
}

/** Ends the program after a signal. Unlike the default, the listeners of `exit` run. */
const endBy = (signal: 'SIGINT' | 'SIGTERM'): never => process.exit(128 + constants.signals[signal]);

/**
 * Writes the archive into a folder that only this user can read. A file on disk can be sent again after a broken connection.
 * The archive does not outlive the program, also after a signal.
 */
export async function pack(folder: string, files: readonly string[]): Promise<Archive> {
  const made = await mkdtemp(join(tmpdir(), 'inference-proxy-deploy-'));
  const path = join(made, 'bundle.tar.gz');
  const clear = (): void => rmSync(made, { recursive: true, force: true });
  process.on('exit', clear).on('SIGINT', endBy).on('SIGTERM', endBy);
  const remove = (): void => {
    clear();
    process.off('exit', clear).off('SIGINT', endBy).off('SIGTERM', endBy);
  };
  try {
    // The prefix `./`, because the library reads an argument that begins with @ as another archive.
    const names = files.map((name) => `./${name}`);
    await create({ gzip: true, file: path, cwd: folder, portable: true, noDirRecurse: true }, names);
  } catch (error) {
    remove();
    throw error;
  }
  return { path, size: statSync(path).size, remove };
}
