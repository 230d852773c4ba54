// Contract 7: the bound of the disk for unpacked versions and packages, on real folders.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Runtime } from '../runtimes/runtime.ts';
import { BoundedFolders } from './bounded-folders.ts';

const KIB = 1024;
/** Size of the file in each folder. */
const FILE_BYTES = 64 * KIB;

let root: string;
let lines: string[];
let folders: BoundedFolders;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'bounded-'));
  lines = [];
  const line = (_: object, text: string): void => void lines.push(text);
  folders = new BoundedFolders({
    maxBytes: 2.5 * FILE_BYTES,
    setting: 'MAX_BYTES',
    remove: async (folder, isInUse) => {
      if (isInUse()) return false;
      if (basename(folder) === 'stuck') throw new Error('busy');
      await rm(folder, { recursive: true });
      return true;
    },
    logger: { info: line, warn: line },
  });
});
afterEach(() => rm(root, { recursive: true }));

async function made(name: string): Promise<string> {
  await mkdir(join(root, name));
  await writeFile(join(root, name, 'file'), Buffer.alloc(FILE_BYTES, 1));
  return join(root, name);
}

/** Makes a folder of an earlier process. */
async function found(name: string, usedAt: number): Promise<string> {
  const folder = await made(name);
  folders.found(folder, usedAt, FILE_BYTES);
  return folder;
}

/** Makes a folder, and starts a runtime in it. */
async function started(name: string): Promise<{ state: Runtime['state'] }> {
  const folder = await made(name);
  folders.handedOut(folder);
  await folders.grew(folder);
  const runtime: { state: Runtime['state'] } = { state: 'ready' };
  folders.keep(folder, runtime);
  return runtime;
}

const left = async (): Promise<string[]> => (await readdir(root)).sort();

test('the folders that were not used for the longest time go first', async () => {
  await found('newer', 2);
  await found('older', 1);
  await started('fresh');
  expect(await left()).toEqual(['fresh', 'newer']);
});

test('a folder stays while a runtime uses it, and goes after the runtime has closed', async () => {
  const runtime = await started('a');
  await started('b');
  await started('c');
  expect(await left()).toEqual(['a', 'b', 'c']);
  expect(lines).toEqual(['the folders in use need more disk than MAX_BYTES']);
  runtime.state = 'closed';
  await started('d');
  expect(await left()).toEqual(['b', 'c', 'd']);
});

test('a folder that was handed out stays while it is built', async () => {
  const folder = await found('old', 1);
  folders.handedOut(folder);
  await found('other', 2);
  await started('fresh');
  expect(await left()).toEqual(['fresh', 'old']);
});

test('a folder that cannot be removed stops no other removal', async () => {
  await found('stuck', 1);
  await found('old', 2);
  await started('fresh');
  expect(await left()).toEqual(['fresh', 'stuck']);
  expect(lines).toContain('a folder could not be removed; it still counts');
});
