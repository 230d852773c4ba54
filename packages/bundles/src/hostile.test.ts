// Contract 7, "Bundle rules": bundles that must be rejected without a trace, by the check at the gateway and by the unpacking at the worker.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { inspectBundle } from './inspect.ts';
import { asStream, bundleBytes, entryBytes, type TestEntry, tarBytes } from './testing/archives.ts';
import { unpackBundle } from './unpack.ts';

const NAMES = { manifests: ['app.toml'], entries: ['main.py'] };
const main: TestEntry = { path: 'main.py', content: 'def f(): pass' };
const whole = bundleBytes([main]);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bundles-'));
});
afterAll(() => rm(folder, { recursive: true }));

const link = (path: string, linkpath: string): TestEntry => ({ path, type: 'SymbolicLink', linkpath });

/** A gzip archive of 2 MB that becomes more than 2 GiB. */
function bomb(): Buffer {
  const piece = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  return Buffer.concat([gzipSync(entryBytes(main)), gzipSync(tarHeaderOf(8 * 1024 ** 3)), ...Array(33).fill(piece)]);
}
const tarHeaderOf = (size: number): Buffer => entryBytes({ path: 'zeros', size });

const HOSTILE: readonly (readonly [string, () => Buffer, RegExp])[] = [
  ['an empty body', () => Buffer.alloc(0), /gzip|damaged/],
  ['text', () => Buffer.from('hello'), /gzip/],
  ['a tar archive without compression', () => tarBytes([main]), /gzip/],
  ['a truncated gzip archive', () => whole.subarray(0, -9), /gzip|damaged/],
  ['a gzip archive with a wrong checksum', () => Buffer.concat([whole.subarray(0, -8), Buffer.alloc(8)]), /gzip/],
  ['a gzip archive of text', () => gzipSync('hello, this is no archive at all'.repeat(100)), /damaged/],
  ['an empty archive', () => gzipSync(Buffer.alloc(0)), /damaged/],
  ['an archive that ends inside a file', () => gzipSync(entryBytes({ ...main, size: 5_000 })), /damaged/],
  ['an archive inside an archive of the same kind', () => gzipSync(whole), /damaged/],
  ['a header with a wrong checksum', () => gzipSync(Buffer.concat([broken(), Buffer.alloc(1024)])), /damaged/],
  ['an absolute path', () => bundleBytes([main, { path: '/etc/cron.d/x' }]), /absolute path/],
  ['a path with ".."', () => bundleBytes([main, { path: '../outside.py' }]), /contains "\.\."/],
  ['a path with ".." in the middle', () => bundleBytes([main, { path: 'a/../../b.py' }]), /contains "\.\."/],
  ['a folder above', () => bundleBytes([main, { path: '..', type: 'Directory' }]), /contains "\.\."/],
  ['a file without a name', () => bundleBytes([main, { path: '.', type: 'File' }]), /no name|type/],
  ['a link to an absolute path', () => bundleBytes([main, link('passwd', '/etc/passwd')]), /absolute target/],
  ['a link above the folder', () => bundleBytes([main, link('up', '..')]), /leaves the app's folder/],
  ['a link above the folder from below', () => bundleBytes([main, link('a/b/up', '../../../x')]), /leaves/],
  [
    'a link with ".." behind a name',
    () => bundleBytes([main, link('a/root', '..'), link('a/up', 'root/../x')]),
    /behind a name/,
  ],
  ['a file below a link', () => bundleBytes([main, link('a', '.'), { path: 'a/b.py' }]), /not a folder/],
  ['a link in place of a folder', () => bundleBytes([main, { path: 'a/b.py' }, link('a', '.')]), /more than once/],
  ['a link in place of a file', () => bundleBytes([main, link('main.py', 'other.py')]), /more than once/],
  ['a hard link outside', () => bundleBytes([main, { path: 'x', type: 'Link', linkpath: '/etc/passwd' }]), /absolute/],
  ['a hard link above', () => bundleBytes([main, { path: 'x', type: 'Link', linkpath: '../x' }]), /contains "\.\."/],
  ['a hard link to no file', () => bundleBytes([main, { path: 'x', type: 'Link', linkpath: 'y' }]), /no earlier file/],
  [
    'a hard link to a link',
    () => bundleBytes([main, link('l', 'main.py'), { path: 'x', type: 'Link', linkpath: 'l' }]),
    /no earlier/,
  ],
  ['a character device', () => bundleBytes([main, { path: 'null', type: 'CharacterDevice' }]), /CharacterDevice/],
  ['a block device', () => bundleBytes([main, { path: 'sda', type: 'BlockDevice' }]), /BlockDevice/],
  ['a named pipe', () => bundleBytes([main, { path: 'pipe', type: 'FIFO' }]), /FIFO/],
  ['names that differ in case', () => bundleBytes([main, { path: 'MAIN.py' }]), /differ only in case/],
  ['folders that differ in case', () => bundleBytes([main, { path: 'a/x' }, { path: 'A/y' }]), /differ only in case/],
  ['names of two normalisations', () => bundleBytes([main, { path: 'é' }, { path: 'e\u0301' }]), /normalisation/],
  ['the German sharp s and "ss"', () => bundleBytes([main, { path: 'straße' }, { path: 'STRASSE' }]), /differ only/],
  ['a file twice', () => bundleBytes([main, main]), /more than once/],
  ['a file as a folder', () => bundleBytes([main, { path: 'main.py/x' }]), /not a folder/],
  ['a very long name', () => bundleBytes([main, ...long('n'.repeat(300))]), /longer than 255/],
  ['a very long path', () => bundleBytes([main, ...long(`${'abc/'.repeat(300)}x`)]), /longer than 1024/],
  ['a name of a megabyte', () => bundleBytes([main, ...long('n'.repeat(1024 * 1024))]), /damaged|not/],
  [
    'more than 50,000 entries',
    () => bundleBytes([main, ...Array<TestEntry>(50_000).fill({ path: 'a/', type: 'Directory' })]),
    /50000 entries/,
  ],
  ['more than 2 GiB unpacked', bomb, /2 GiB/],
];

/** Returns an entry whose name is in an extended header, as GNU tar writes it. */
const long = (name: string): TestEntry[] => [
  { path: '././@LongLink', type: 'NextFileHasLongPath', content: `${name}\0` },
  { path: 'short', content: 'x' },
];

function broken(): Buffer {
  const bytes = entryBytes(main);
  bytes[3] = 0x7a;
  return bytes;
}

test.each(HOSTILE)('a bundle that is or has %s is rejected and leaves no files', async (_, bytes, why) => {
  const body = bytes();
  const expected = { code: 'invalid_bundle', message: expect.stringMatching(why) };
  await expect(inspectBundle(asStream(body), NAMES)).rejects.toMatchObject(expected);
  await expect(unpackBundle(asStream(body), join(folder, 'app'))).rejects.toMatchObject(expected);
  expect(await readdir(folder)).toEqual([]);
});

test('a bundle without an entry point is rejected', async () => {
  const bytes = bundleBytes([{ path: 'other.py' }, { path: 'sub/main.py' }]);
  await expect(inspectBundle(asStream(bytes), NAMES)).rejects.toMatchObject({
    code: 'invalid_bundle',
    message: expect.stringContaining('app.toml, main.py'),
  });
});

test('an error of the source is no fault of the bundle', async () => {
  const source = asStream(whole);
  const inspected = inspectBundle(source, NAMES);
  source.destroy(new Error('the disk is gone'));
  await expect(inspected).rejects.toThrow('the disk is gone');
});
