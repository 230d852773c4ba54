// docs/migrating.md: manifests of the hosted product, as their authors wrote them.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ManifestError, parseManifest, readManifest } from './manifest.ts';

const LIMIT = 1_000_000;
const read = (text: string) => parseManifest(text, LIMIT);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifest-'));
});
afterEach(() => rm(folder, { recursive: true }));

const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);

test('an entrypoint list under [runtime.python] is the command of an ASGI app', () => {
  const { manifest, unused, unknown } = read(`[cerebrium.runtime.python]
python_version = "3.12"
use_uv = true
entrypoint = ["uvicorn", "main:app", "--host", "0.0.0.0", "--port", "8000"]
port = 8000
healthcheck_endpoint = "/health"
readycheck_endpoint = "/ready"`);
  expect(manifest.server).toMatchObject({
    entrypoint: ['uvicorn', 'main:app', '--host', '0.0.0.0', '--port', '8000'],
    port: 8000,
    healthcheck: '/health',
    readycheck: '/ready',
  });
  expect(unknown).toEqual([]);
  expect(unused).toEqual(['runtime.python.python_version', 'runtime.python.use_uv']);
});

test('an entrypoint text under [runtime.python] is still a module', () => {
  expect(read('[runtime.python]\nentrypoint = "app/run.py"').manifest).toMatchObject({
    entrypoint: 'app/run.py',
    server: undefined,
  });
});

test('a mistake in such a section is reported with the name of the section', () => {
  expect(() => read('[runtime.python]\nentrypoint = ["serve"]\nport = "8000"')).toThrow(/\[runtime\.python\] port/);
});

test.each([
  [
    '[cerebrium.runtime.docker]\ndockerfile_path = "./Dockerfile"',
    /\[runtime\.docker\].*builds no images.*entrypoint.*url/,
  ],
  [
    '[cerebrium.runtime.custom]\nport = 8192\ndockerfile_path = "./Dockerfile"',
    /\[runtime\.custom\] dockerfile_path: .*builds no images.*entrypoint.*url/,
  ],
  ['[cerebrium.runtime.deepgram]\nlanguage = "en"', /\[runtime\.deepgram\]: Deepgram is a partner service.*url/],
  ['[cerebrium.runtime.rime]', /\[runtime\.rime\]: Rime is a partner service.*url/],
  ['[cerebrium.runtime.other]', /\[runtime\.other\] is not a runtime of this service: expected \[runtime\.python\]/],
])('%j is rejected with its name and the next step', (text, message) => {
  expect(() => read(text)).toThrow(ManifestError);
  expect(() => read(text)).toThrow(message);
});

test('[runtime.cortex] and scaling.compute_tier are keys of the hosted product that have no effect', () => {
  const { manifest, unused, unknown } = read(
    '[cerebrium.runtime.cortex]\npython_version = "3.11"\n[cerebrium.scaling]\ncompute_tier = "spot"',
  );
  expect(manifest).toMatchObject({ entrypoint: 'main.py', server: undefined });
  expect(unknown).toEqual([]);
  expect(unused).toEqual(['runtime.cortex', 'scaling.compute_tier']);
});

test.each([
  ['compute = "AMPERE_A10"', 1],
  ['compute = "HOPPER_H100"\ngpu_count = 2', 1],
  ['compute = "CPU"', 100],
  ['compute = "cpu"', 100],
  ['compute = ""', 100],
  ['compute = "ADA_L4"\n[scaling]\nreplica_concurrency = 8', 8],
])('[hardware] %j means %d runs at a time in a process', (hardware, replicaConcurrency) => {
  expect(read(`[hardware]\n${hardware}`).manifest).toMatchObject({ replicaConcurrency });
});

test('an app.toml beside a cerebrium.toml is merged over it, key by key', async () => {
  await write(
    'cerebrium.toml',
    `[cerebrium.scaling]
min_replicas = 2
max_replicas = 4
replica_concurrency = 3
[cerebrium.hardware]
memory = 4.0
[cerebrium.env]
KEPT = "hosted"
CHANGED = "hosted"`,
  );
  await write(
    'app.toml',
    '[scaling]\nreplica_concurrency = 7\n[env]\nCHANGED = "own"\n[streaming]\npreformatted = false',
  );
  const { manifest } = await readManifest(folder, LIMIT);
  expect(manifest).toMatchObject({
    replicas: 2,
    replicaConcurrency: 7,
    memoryBytes: 4 * 2 ** 30,
    preformatted: false,
    env: { KEPT: 'hosted', CHANGED: 'own' },
  });
});

test('a runtime in app.toml replaces the runtime of cerebrium.toml', async () => {
  await write(
    'cerebrium.toml',
    '[cerebrium.runtime.docker]\ndockerfile_path = "./Dockerfile"\n[cerebrium.hardware]\ncpu = 1',
  );
  await write('app.toml', '[runtime.custom]\nentrypoint = ["serve", "{port}"]');
  const { manifest, unused } = await readManifest(folder, LIMIT);
  expect(manifest.server?.entrypoint).toEqual(['serve', '{port}']);
  expect(unused).toEqual(['hardware.cpu']);
});

test('a url in app.toml replaces how cerebrium.toml starts the server', async () => {
  await write(
    'cerebrium.toml',
    '[cerebrium.runtime.custom]\nport = 8192\ndockerfile_path = "./Dockerfile"\nhealthcheck_endpoint = "/health"',
  );
  await write('app.toml', '[runtime.custom]\nurl = "http://model:8192"');
  const { manifest } = await readManifest(folder, LIMIT);
  expect(manifest.server).toMatchObject({ url: 'http://model:8192', port: undefined, healthcheck: '/health' });
});

test('a mistake in two merged files is reported with the names of the files', async () => {
  await write('cerebrium.toml', '[cerebrium.scaling]\ntimeout = "5"');
  await write('app.toml', '[scaling]\nmin_replicas = 1');
  await expect(readManifest(folder, LIMIT)).rejects.toThrow('app.toml over cerebrium.toml: [scaling] timeout');
  await write('cerebrium.toml', 'a = = 1');
  await expect(readManifest(folder, LIMIT)).rejects.toThrow('cerebrium.toml: not TOML');
});
