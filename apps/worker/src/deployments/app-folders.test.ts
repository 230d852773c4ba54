// Contract 6, "Settings": finding apps in the deployments folder, `WORKER_APPS`, and the versions of code.
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { appFilter, findApps } from './app-folders.ts';
import { readTree, versionOf } from './version.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'deployments-'));
});
afterEach(() => rm(root, { recursive: true }));

async function file(path: string, text = ''): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

const names = async (patterns = ''): Promise<string[]> =>
  (await findApps(root, appFilter(patterns))).apps.map(({ project, app }) => `${project}/${app}`);

const version = async (): Promise<string> => versionOf(root, await readTree(root));

test('a folder with a manifest or a main.py is an app; every other folder is not', async () => {
  await file('demo/plain/main.py');
  await file('demo/described/app.toml');
  await file('demo/hosted/cerebrium.toml');
  await file('demo/notes/readme.md');
  await file('demo/stray.py');
  await file('.git/hooks/main.py');
  expect(await names()).toEqual(['demo/described', 'demo/hosted', 'demo/plain']);
});

test('a folder with files and without an entry point is listed separately; an empty folder is not listed', async () => {
  await file('demo/chat/app.py');
  await mkdir(join(root, 'demo/empty'));
  await file('demo/cached/.cache/x');
  await file('demo/group/chat/main.py');
  const { apps, withoutEntry } = await findApps(root, () => true);
  expect(apps).toEqual([]);
  expect(withoutEntry.map(({ app }) => app)).toEqual(['chat']);
});

test('a link to a folder is an app too', async () => {
  await file('elsewhere/chat/main.py');
  await mkdir(join(root, 'demo'));
  await symlink(join(root, 'elsewhere/chat'), join(root, 'demo/chat'));
  expect(await names('demo/*')).toEqual(['demo/chat']);
});

test('a missing deployments folder contains no apps', async () => {
  expect((await findApps(join(root, 'none'), () => true)).apps).toEqual([]);
});

test('folders whose names no call can contain are reported and ignored', async () => {
  await file('demo/runs/main.py');
  await file('demo/with space/main.py');
  const found = await findApps(root, () => true);
  expect(found.apps).toEqual([]);
  expect(found.misnamed).toEqual(['demo/runs', 'demo/with space']);
});

test.each([
  ['', ['acme/a', 'acme/b', 'demo/chat', 'demo/other']],
  ['acme/*,demo/chat', ['acme/a', 'acme/b', 'demo/chat']],
  [' */chat ', ['demo/chat']],
  ['acme/x*', []],
  ['*o/c*a*t*', ['demo/chat']],
  ['*/ch*hat', []],
  ['*me/*', ['acme/a', 'acme/b']],
  ['*/**', ['acme/a', 'acme/b', 'demo/chat', 'demo/other']],
  ['demo/ch.t', []],
])('WORKER_APPS=%j serves %j', async (patterns, expected) => {
  for (const app of ['acme/a', 'acme/b', 'demo/chat', 'demo/other']) await file(`${app}/main.py`);
  expect(await names(patterns)).toEqual(expected);
});

test.each(['chat', 'a/b/c', '/x'])('WORKER_APPS=%j is rejected', (patterns) => {
  expect(() => appFilter(patterns)).toThrow(/expected project\/app/);
});

test('a version changes with the code and its manifest', async () => {
  await file('main.py', 'a = 1');
  const first = await version();
  expect(await version()).toBe(first);
  await file('main.py', 'a = 2');
  const second = await version();
  await file('app.toml', '');
  expect(new Set([first, second, await version()]).size).toBe(3);
});

test('a version does not change with files that are not code', async () => {
  await file('main.py', 'a = 1');
  const first = await version();
  for (const path of [
    '__pycache__/main.pyc',
    '.git/x.py',
    '.venv/lib/x.py',
    'node_modules/x.js',
    'calls.log',
    'cache.db',
  ])
    await file(path, 'x');
  await file('env/pyvenv.cfg', '');
  await file('env/lib/x.py', 'x');
  expect(await version()).toBe(first);
});
