// `npm run secrets`: writes the keys and passwords of production, each once.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REDIS_USERS } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { root } from '../documents/markdown.ts';

const script = join(root, 'scripts', 'secrets.mjs');
const secrets = (...args: string[]) => promisify(execFile)(process.execPath, [script, ...args], { cwd: root });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'secrets-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('writes keys and passwords that only the owner may read, and keeps existing values', async () => {
  const file = join(folder, 'env');
  await secrets('--file', file);
  const text = await readFile(file, 'utf8');
  expect(text).toMatch(/^JWT_SECRET=[0-9a-f]{64}$/m);
  const key = /^SECRETS_KEY=(.+)$/m.exec(text)?.[1] ?? '';
  expect(Buffer.from(key, 'base64')).toHaveLength(32);
  const passwords = [...text.matchAll(/^REDIS_([A-Z]+)_PASSWORD=([0-9a-f]{64})$/gm)];
  expect(passwords.map(([, user]) => user?.toLowerCase()).sort()).toEqual([...REDIS_USERS].sort());
  expect(new Set(passwords.map(([, , password]) => password)).size).toBe(REDIS_USERS.length);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await expect(secrets('--file', file)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nothing was changed'),
  });
  expect(await readFile(file, 'utf8')).toBe(text);
});

test('adds only the missing values to an older file', async () => {
  const file = join(folder, 'older');
  const older = 'JWT_JWKS_URL=https://idp.test/keys\nSECRETS_KEY=kept\nREDIS_MAXMEMORY=2gb';
  await writeFile(file, older);
  await secrets('--file', file);
  const text = await readFile(file, 'utf8');
  expect(text.startsWith(`${older}\n#`)).toBe(true);
  expect(text.match(/^[A-Z_]+(?==)/gm)?.slice(3)).toEqual(
    ['ADMIN', 'BACKUP', 'MONITOR', 'GATEWAY', 'WORKER', 'DISPATCHER'].map((user) => `REDIS_${user}_PASSWORD`),
  );
});

test('writes different values to each file, and rejects unknown arguments', async () => {
  const texts = await Promise.all(
    ['a', 'b'].map(async (name) => {
      await secrets('--file', join(folder, name));
      return readFile(join(folder, name), 'utf8');
    }),
  );
  expect(texts[0]).not.toBe(texts[1]);
  await expect(secrets('--files', 'x')).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^Usage:/) });
});
