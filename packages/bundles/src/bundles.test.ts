// Contract 7, "Versions": the version's name, and honest bundles that are unpacked.
import { createHash } from 'node:crypto';
import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { create } from 'tar';
import { inspectBundle } from './inspect.ts';
import { asStream, bundleBytes, tarBytes } from './testing/archives.ts';
import { unpackBundle } from './unpack.ts';

const NAMES = { manifests: ['app.toml', 'cerebrium.toml'], entries: ['main.py'] };
const sha = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bundles-'));
});
afterAll(() => rm(folder, { recursive: true }));

const versionOf = async (bytes: Buffer): Promise<string> => (await inspectBundle(asStream(bytes), NAMES)).version;

test('the version is the hash of the sorted files: path, executable bit and content', async () => {
  const bytes = bundleBytes([
    { path: './run.sh', content: 'echo', mode: 0o755 },
    { path: 'a/', type: 'Directory' },
    { path: 'a/z.py', content: 'z' },
    { path: 'main.py', content: 'm' },
    { path: 'link', type: 'SymbolicLink', linkpath: 'a/z.py' },
    { path: 'copy', type: 'Link', linkpath: 'main.py' },
  ]);
  const lines = [
    `a/z.py\0-\0${sha('z')}\n`,
    `copy\0-\0${sha('m')}\n`,
    `link\0l\0${sha('a/z.py')}\n`,
    `main.py\0-\0${sha('m')}\n`,
    `run.sh\0x\0${sha('echo')}\n`,
  ];
  expect(await inspectBundle(asStream(bytes), NAMES)).toEqual({
    version: sha(lines.join('')),
    files: 5,
    unpackedBytes: 7,
  });
});

test('dates, owners, modes, order and compression do not change the version', async () => {
  const one = { path: 'main.py', content: 'm' };
  const two = { path: 'b.py', content: 'b' };
  const version = await versionOf(bundleBytes([one, two]));
  expect(
    await versionOf(
      bundleBytes([
        { ...two, mode: 0o600 },
        { ...one, mtime: new Date() },
      ]),
    ),
  ).toBe(version);
  expect(await versionOf(gzipSync(tarBytes([{ path: 'x', type: 'Directory' }, one, two]), { level: 1 }))).toBe(version);
});

test.each([
  ['a content', [{ path: 'main.py', content: 'n' }]],
  ['a name', [{ path: 'Main.py', content: 'm' }, { path: 'app.toml' }]],
  ['the executable bit', [{ path: 'main.py', content: 'm', mode: 0o755 }]],
  ['a further file', [{ path: 'main.py', content: 'm' }, { path: 'x' }]],
])('%s changes the version', async (_, entries) => {
  expect(await versionOf(bundleBytes(entries))).not.toBe(
    await versionOf(bundleBytes([{ path: 'main.py', content: 'm' }])),
  );
});

test('the text of the first manifest is returned', async () => {
  const bytes = bundleBytes([
    { path: 'cerebrium.toml', content: 'later' },
    { path: 'app.toml', content: '[scaling]' },
  ]);
  expect((await inspectBundle(asStream(bytes), NAMES)).manifest).toBe('[scaling]');
});

test('a folder that the usual tar program packs is unpacked with its links, long names and executable bits', async () => {
  const source = join(folder, 'source');
  const deep = `${'long-name/'.repeat(20)}ünïcode-${'x'.repeat(120)}.txt`;
  await mkdir(join(source, deep, '..'), { recursive: true });
  await writeFile(join(source, 'main.py'), 'def f(): pass');
  await writeFile(join(source, deep), 'deep');
  await writeFile(join(source, 'run.sh'), 'echo');
  await chmod(join(source, 'run.sh'), 0o700);
  await symlink('../main.py', join(source, 'long-name/link.py'));
  await link(join(source, 'run.sh'), join(source, 'same.sh'));
  await mkdir(join(source, 'empty'));
  const archive = join(folder, 'source.tar.gz');
  await create({ gzip: true, cwd: source, file: archive }, ['.']);
  const bytes = await readFile(archive);
  const target = join(folder, 'target');
  await unpackBundle(asStream(bytes), target);
  expect((await readdir(target)).sort()).toEqual(['empty', 'long-name', 'main.py', 'run.sh', 'same.sh']);
  expect(await readFile(join(target, deep), 'utf8')).toBe('deep');
  expect((await stat(join(target, 'run.sh'))).mode & 0o777).toBe(0o755);
  expect((await stat(join(target, 'same.sh'))).mode & 0o777).toBe(0o755);
  expect((await stat(join(target, 'main.py'))).mode & 0o777).toBe(0o644);
  expect((await lstat(join(target, 'long-name/link.py'))).isSymbolicLink()).toBe(true);
  expect(await readlink(join(target, 'long-name/link.py'))).toBe('../main.py');
  expect((await inspectBundle(asStream(bytes), NAMES)).files).toBe(5);
});
