// Contract 7: which file of a folder is the entry point of an app.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { findEntryPoint } from './entry-point.ts';
import { readManifest } from './manifest.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'app-'));
});
afterEach(() => rm(root, { recursive: true }));

async function file(path: string, text = ''): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

test.each(['main.ts', 'main.mts', 'main.cts', 'main.tsx', 'main.mjs', 'main.js', 'main.cjs'])(
  'a folder with %s is an app in JavaScript',
  async (name) => {
    await file(name);
    expect(await findEntryPoint(root)).toEqual({ language: 'node', file: name });
    const { manifest } = await readManifest(root, 1);
    expect(manifest).toMatchObject({
      language: 'node',
      entrypoint: name,
      interpreter: undefined,
      replicaConcurrency: 100,
    });
  },
);

test('main.py wins over every file in JavaScript, unless the manifest has [runtime.node]', async () => {
  await file('main.py');
  await file('main.ts');
  await file('package.json', '{"main": "main.ts"}');
  expect((await readManifest(root, 1)).manifest).toMatchObject({ language: 'python', entrypoint: 'main.py' });
  await file('app.toml', '[runtime.node]\nnode = "bun"');
  expect((await readManifest(root, 1)).manifest).toMatchObject({
    language: 'node',
    entrypoint: 'main.ts',
    interpreter: 'bun',
  });
});

test.each([
  ['{"main": "lib/app.js"}', 'lib/app.js'],
  ['{"main": "./lib/app.js", "exports": "./lib/other.js"}', 'lib/other.js'],
  ['{"exports": {".": {"types": "./x.d.ts", "import": "./lib/app.js"}}}', 'lib/app.js'],
  ['{"exports": {"require": "./lib/app.js", "default": "./lib/other.js"}}', 'lib/other.js'],
])('package.json with %s names %s', async (text, found) => {
  await file('package.json', text);
  await file('main.js');
  for (const name of ['lib/app.js', 'lib/other.js']) await file(name);
  expect(await findEntryPoint(root)).toEqual({ language: 'node', file: found });
});

test.each(['{"main": "missing.js"}', '{"main": "../outside.js"}', '{"main": 5}', 'no JSON', '[]'])(
  'package.json with %s names no entry point',
  async (text) => {
    await file('package.json', text);
    expect(await findEntryPoint(root)).toBeUndefined();
    await file('main.mjs');
    expect(await findEntryPoint(root)).toEqual({ language: 'node', file: 'main.mjs' });
  },
);

test('a manifest with [runtime.node] needs an entry point, and excludes other runtimes', async () => {
  await file('app.toml', '[runtime.node]');
  await expect(readManifest(root, 1)).rejects.toThrow('the folder has no entry point');
  await file('app.toml', '[runtime.node]\nentrypoint = "src/app.ts"');
  expect((await readManifest(root, 1)).manifest).toMatchObject({ language: 'node', entrypoint: 'src/app.ts' });
  await file('app.toml', '[runtime.node]\n[runtime.python]');
  await expect(readManifest(root, 1)).rejects.toThrow('expected only one of them');
});
