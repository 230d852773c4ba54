// `npm run secrets`: the keys of production, written once.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { root } from '../documents/markdown.ts';

const script = join(root, 'scripts', 'secrets.mjs');
const secrets = (...args: string[]) => promisify(execFile)(process.execPath, [script, ...args], { cwd: root });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'secrets-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('writes both keys for its owner alone, and never over a file that is there', async () => {
  const file = join(folder, 'env');
  await secrets('--file', file);
  const text = await readFile(file, 'utf8');
  expect(text).toMatch(/^JWT_SECRET=[0-9a-f]{64}$/m);
  const key = /^SECRETS_KEY=(.+)$/m.exec(text)?.[1] ?? '';
  expect(Buffer.from(key, 'base64')).toHaveLength(32);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await expect(secrets('--file', file)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('left as it is'),
  });
  expect(await readFile(file, 'utf8')).toBe(text);
});

test('no two files are alike, and what is not understood is refused', async () => {
  const texts = await Promise.all(
    ['a', 'b'].map(async (name) => {
      await secrets('--file', join(folder, name));
      return readFile(join(folder, name), 'utf8');
    }),
  );
  expect(texts[0]).not.toBe(texts[1]);
  await expect(secrets('--files', 'x')).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^Usage:/) });
});
