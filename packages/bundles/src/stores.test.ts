// Contract 7: every bundle store passes the same tests: a folder, and a real S3-compatible server.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { type S3Server, startS3Server } from '@inference-proxy/test/s3';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type BundleStore, BundleStoreError, DamagedBundle, MissingBundle } from './bundle-store.ts';
import { FileBundleStore } from './file-bundle-store.ts';
import { S3BundleStore } from './s3-bundle-store.ts';

const sha = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');
const MIB = 1024 * 1024;
/** Writes that began before now count as interrupted. Servers give times in whole seconds. */
const ALL_MS = -5_000;

/** A store of one kind, empty at the start. */
interface Place {
  open(): BundleStore;
  /** Replaces the stored bytes of a bundle, without the store. */
  damage(digest: string, bytes: string): Promise<void>;
  /** False if the server gives every upload an old date, as moto does. */
  readonly datesWrites: boolean;
}

let root: string;
const s3 = await startS3Server();
if ('missing' in s3) process.stderr.write(`The tests of bundles in S3 are skipped: ${s3.missing}\n`);
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'stores-'));
});
afterAll(async () => {
  if (!('missing' in s3)) await s3.stop();
  await rm(root, { recursive: true });
});

const s3Place = (server: S3Server, more: Partial<S3Server> = {}) => {
  const { bucket, endpoint, accessKeyId, secretAccessKey } = { ...server, ...more };
  const prefix = `tests/${randomBytes(4).toString('hex')}`;
  return { bucket, endpoint, prefix, region: 'us-east-1', credentials: { accessKeyId, secretAccessKey } };
};

async function inFolder(): Promise<Place> {
  const folder = await mkdtemp(join(root, 'store-'));
  return {
    open: () => new FileBundleStore(folder),
    datesWrites: true,
    damage: (digest, bytes) => writeFile(join(folder, digest.slice(0, 2), digest), bytes),
  };
}

async function inBucket(): Promise<Place> {
  const { prefix, ...place } = s3Place(s3 as S3Server);
  return {
    open: () => new S3BundleStore({ ...place, prefix }),
    datesWrites: process.env.S3_UNDER_TEST !== undefined,
    async damage(digest, Body) {
      const client = new S3Client({ ...place, forcePathStyle: true });
      await client.send(new PutObjectCommand({ Bucket: place.bucket, Key: `${prefix}/${digest}`, Body }));
      client.destroy();
    },
  };
}

const kinds: readonly (readonly [string, () => Promise<Place>])[] = [
  ['a folder', inFolder],
  ...('missing' in s3 ? [] : [['S3', inBucket] as const]),
];

async function store(into: BundleStore, bytes: Buffer, piece = 100_000): Promise<string> {
  const writer = await into.write();
  for (let at = 0; at < bytes.length; at += piece) await writer.write(bytes.subarray(at, at + piece));
  const digest = sha(bytes);
  await writer.commit(digest);
  return digest;
}
const read = async (from: BundleStore, digest: string): Promise<Buffer> =>
  Buffer.concat(await (await from.get(digest)).toArray());
async function listed(from: BundleStore): Promise<string[]> {
  const digests: string[] = [];
  for await (const digest of from.list()) digests.push(digest);
  return digests;
}

test.each(kinds)('%s returns the bytes that were stored, also after a repeat', async (_, make) => {
  const bundles = (await make()).open();
  expect(await listed(bundles)).toEqual([]);
  // One part, exactly two parts, and three parts with a part of one byte.
  for (const size of [1, 16 * MIB, 16 * MIB + 1]) {
    const bytes = randomBytes(size);
    const digest = await store(bundles, bytes);
    expect(await store(bundles, bytes, 3 * MIB)).toBe(digest);
    expect((await read(bundles, digest)).equals(bytes)).toBe(true);
  }
  expect(await listed(bundles)).toHaveLength(3);
  expect(await bundles.removeInterrupted(ALL_MS)).toBe(0);
});

test.each(kinds)('%s has a bundle only after its commit, and nothing after an abort', async (_, make) => {
  const bundles = (await make()).open();
  const bytes = randomBytes(9 * MIB);
  const writer = await bundles.write();
  await writer.write(bytes);
  expect(await listed(bundles)).toEqual([]);
  await expect(bundles.get(sha(bytes))).rejects.toBeInstanceOf(MissingBundle);
  await writer.abort();
  expect(await listed(bundles)).toEqual([]);
  expect(await bundles.removeInterrupted(ALL_MS)).toBe(0);
  const kept = await store(bundles, Buffer.from('kept'));
  expect(await listed(bundles)).toEqual([kept]);
});

test.each(kinds)('%s removes what a dead writer left, but nothing of a young write', async (_, make) => {
  const place = await make();
  const dead = await place.open().write();
  await dead.write(randomBytes(9 * MIB));
  const bundles = place.open();
  const kept = await store(bundles, Buffer.from('kept'));
  if (place.datesWrites) expect(await bundles.removeInterrupted(60_000)).toBe(0);
  expect(await bundles.removeInterrupted(ALL_MS)).toBe(1);
  expect(await bundles.removeInterrupted(ALL_MS)).toBe(0);
  expect(await listed(bundles)).toEqual([kept]);
  await dead.abort();
});

test.each(kinds)('%s removes a bundle, and a repeat does no harm', async (_, make) => {
  const bundles = (await make()).open();
  const [gone, kept] = [await store(bundles, Buffer.from('gone')), await store(bundles, Buffer.from('kept'))];
  for (let time = 0; time < 2; time++) await bundles.remove(gone);
  expect(await listed(bundles)).toEqual([kept]);
  await expect(bundles.get(gone)).rejects.toBeInstanceOf(MissingBundle);
});

test.each(kinds)('%s does not return damaged bytes as whole, and a repeated upload repairs them', async (_, make) => {
  const place = await make();
  const bundles = place.open();
  const digest = await store(bundles, Buffer.from('right'));
  await place.damage(digest, 'wrong');
  await expect(read(bundles, digest)).rejects.toBeInstanceOf(DamagedBundle);
  await store(bundles, Buffer.from('right'));
  expect((await read(bundles, digest)).toString()).toBe('right');
});

test.each(kinds)('%s takes no name that is not a digest', async (_, make) => {
  const bundles = (await make()).open();
  await expect(bundles.get('../secret')).rejects.toThrow('is not a digest');
  await expect(bundles.remove('incoming')).rejects.toThrow('is not a digest');
});

test('a folder that cannot be used is an error without its path', async () => {
  const file = join(root, 'a-file');
  await writeFile(file, '');
  const failed = new FileBundleStore(file).write();
  await expect(failed).rejects.toThrow(/^the folder of the bundle store cannot be used \(E[A-Z]+\)$/);
  expect(await readdir(root)).toContain('a-file');
});

const inS3 = 'missing' in s3 ? test.skip : test;
const failures: readonly (readonly [string, Partial<S3Server>, RegExp])[] = [
  ['a port without a server', { endpoint: 'http://127.0.0.1:1' }, /cannot be reached \(ECONNREFUSED\)/],
  ['a bucket that does not exist', { bucket: 'no-such-bucket' }, /the bucket of the bundle store does not exist/],
  ['a wrong secret key', { secretAccessKey: 'wrong-secret-key' }, /refuses the secret key/],
  ['an unknown access key', { accessKeyId: 'AKIAUNKNOWN' }, /does not know the access key/],
];
for (const [name, wrong, message] of failures)
  inS3(`${name} is a clear error without address and keys`, async () => {
    const bundles = new S3BundleStore(s3Place(s3 as S3Server, wrong));
    const steps = [
      () => store(bundles, Buffer.from('small')),
      () => store(bundles, randomBytes(9 * MIB)),
      () => bundles.get(sha('x')),
      () => listed(bundles),
      () => bundles.remove(sha('x')),
    ];
    const { endpoint, secretAccessKey } = { ...(s3 as S3Server), ...wrong };
    for (const step of name.startsWith('a bucket') ? steps.slice(0, 4) : steps) {
      const error = await step().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(BundleStoreError);
      expect((error as Error).message).toMatch(message);
      expect((error as Error).message).not.toContain(endpoint);
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error)) + String((error as Error).cause)).not.toContain(
        secretAccessKey,
      );
    }
  });

/** Passes requests on, except the requests for the second part of an upload. */
async function failingAtPartTwo(to: string): Promise<Server> {
  const proxy = createServer((asked, answer) => {
    if (asked.url?.includes('partNumber=2')) {
      asked.resume().on('end', () => answer.writeHead(400).end());
      return;
    }
    const { method, url = '', headers } = asked;
    const passed = request(new URL(url, to), { method, headers }, (found) => {
      answer.writeHead(found.statusCode ?? 500, found.headers);
      found.pipe(answer);
    });
    asked.pipe(passed);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return proxy;
}

inS3('an upload that fails in the middle leaves nothing', async () => {
  const proxy = await failingAtPartTwo((s3 as S3Server).endpoint);
  const { port } = proxy.address() as AddressInfo;
  const place = s3Place(s3 as S3Server);
  // The signature covers the name of the host, which is the proxy's.
  const bundles = new S3BundleStore({ ...place, endpoint: `http://127.0.0.1:${port}` });
  const writer = await bundles.write();
  await expect(writer.write(randomBytes(17 * MIB))).rejects.toBeInstanceOf(BundleStoreError);
  await writer.abort();
  const direct = new S3BundleStore(place);
  expect(await direct.removeInterrupted(ALL_MS)).toBe(0);
  expect(await listed(direct)).toEqual([]);
  proxy.close();
});
