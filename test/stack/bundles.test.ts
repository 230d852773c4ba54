// The stack compares each bundle with its sources, so that tests never run old code.
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from '@inference-proxy/supervisor';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { refuseOldBundles } from './bundles.ts';

let root: string;
const source = (): string => join(root, 'apps', 'gateway', 'src', 'main.ts');

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'bundles-'));
  await mkdir(join(root, 'apps', 'gateway', 'src'), { recursive: true });
  await mkdir(join(root, 'apps', 'gateway', 'dist', 'bundle'), { recursive: true });
  await writeFile(source(), 'first();');
  const hash = createHash('sha256').update('first();').digest('hex');
  await writeFile(
    join(root, 'apps', 'gateway', 'dist', 'bundle', 'sources.json'),
    JSON.stringify({ 'src/main.ts': hash }),
  );
});

afterEach(() => rm(root, { recursive: true, force: true }));

test('a bundle that matches its sources is started', () => {
  expect(() => refuseOldBundles(root)).not.toThrow();
});

test('a bundle whose source has changed is rejected with the source and the command to run', async () => {
  await writeFile(source(), 'second();');
  expect(() => refuseOldBundles(root)).toThrow(
    /^The bundle of the gateway does not match apps\/gateway\/src\/main\.ts\. Run `npm run build`/,
  );
});

test('a bundle whose source is missing is rejected', async () => {
  await rm(source());
  await writeFile(join(root, 'apps', 'gateway', 'dist', 'bundle', 'main.js'), '');
  expect(() => refuseOldBundles(root)).toThrow(/does not match/);
});

test('a service without a bundle is rejected', async () => {
  await rm(join(root, 'apps', 'gateway', 'dist'), { recursive: true });
  expect(() => refuseOldBundles(root)).toThrow(/sources\.json/);
});

test('the build of this repository records the sources of every bundle', () => {
  expect(() => refuseOldBundles(projectRoot())).not.toThrow();
});
