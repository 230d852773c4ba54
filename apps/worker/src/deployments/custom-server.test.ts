// Contract 1, "Custom runtimes": the section `[runtime.custom]`, as authors write it for this service or for the hosted product.
import { expect, test } from '@jest/globals';
import { ManifestError, parseManifest } from './manifest.ts';

const LIMIT = 64 * 1024 * 1024;
const read = (text: string) => parseManifest(text, LIMIT);
const server = (text: string) => read(`[runtime.custom]\n${text}`).manifest.server;

test('an app without the section is not a server', () => {
  expect(read('').manifest.server).toBeUndefined();
});

test('a folder of the hosted product is read without a change', () => {
  const { manifest, unused, unknown } = read(`
    [cerebrium.deployment]
    name = "mine"
    [cerebrium.runtime.custom]
    port = 8000
    entrypoint = ["uvicorn", "main:app", "--port", "8000"]
    healthcheck_endpoint = "/health"
    readycheck_endpoint = "ready"
    [cerebrium.scaling]
    min_replicas = 3
    replica_concurrency = 7
    response_grace_period = 30
  `);
  expect(manifest).toMatchObject({ replicas: 1, replicaConcurrency: 7, timeoutMs: 30_000, startupTimeoutMs: 600_000 });
  expect(manifest.server).toEqual({
    entrypoint: ['uvicorn', 'main:app', '--port', '8000'],
    url: undefined,
    port: 8000,
    healthcheck: '/health',
    readycheck: '/ready',
    forwardAuth: false,
    killOnCancel: false,
  });
  expect(unused).toEqual(['deployment.name', 'scaling.min_replicas']);
  expect(unknown).toEqual([]);
});

test.each([
  ['python app.py --name "two words"', ['python', 'app.py', '--name', 'two words']],
  ['sh -c \'echo "$X"; exec it\'', ['sh', '-c', 'echo "$X"; exec it']],
  ['one  \t two\\ words ""', ['one', 'two words', '']],
  ['"a\\"b" c\\"d', ['a"b', 'c"d']],
])('the line %s is split into these words without a shell', (line, words) => {
  expect(server(`entrypoint = ${JSON.stringify(line)}`)?.entrypoint).toEqual(words);
});

test('without a port, or with port 0, every replica gets a different port', () => {
  for (const port of ['', 'port = 0\n']) {
    const { manifest } = read(`[runtime.custom]\n${port}entrypoint = "serve"\n[scaling]\nmin_replicas = 3`);
    expect(manifest).toMatchObject({ replicas: 3, server: { port: undefined } });
  }
});

test('a server with a url has one replica and a shorter start limit', () => {
  const { manifest } = read('[runtime.custom]\nurl = "https://other:8443/base/"\n[scaling]\nmin_replicas = 2');
  expect(manifest).toMatchObject({ replicas: 1, startupTimeoutMs: 10_000 });
  expect(manifest.server).toMatchObject({ url: 'https://other:8443/base', entrypoint: undefined });
});

test.each([
  ['neither a program nor an address', 'port = 80', /either entrypoint or url/],
  ['both', 'entrypoint = "a"\nurl = "http://b"', /either entrypoint or url/],
  ['an empty program', 'entrypoint = " "', /entrypoint: expected a program/],
  ['an empty list', 'entrypoint = []', /entrypoint/],
  ['a quote without an end', 'entrypoint = "a \'b"', /is not closed/],
  ['a port over 65535', 'entrypoint = "a"\nport = 65536', /port/],
  ['an address that is not http or https', 'url = "other:8000"', /url: expected http/],
  ['an address with a password', 'url = "http://a:b@c"', /url: expected scheme/],
  ['an address and a port', 'url = "http://a"\nport = 80', /port: a url already/],
  ['a path with a space', 'entrypoint = "a"\nhealthcheck_endpoint = "a b"', /healthcheck_endpoint: expected a path/],
  ['kill_on_cancel with a url', 'url = "http://a"\nkill_on_cancel = true', /kill_on_cancel/],
])('%s is rejected with a reason', (_what, text, message) => {
  expect(() => server(text)).toThrow(ManifestError);
  expect(() => server(text)).toThrow(message);
});

test('two runtimes in a manifest are rejected', () => {
  expect(() => read('[runtime.custom]\nentrypoint = "a"\n[runtime.python]\nentrypoint = "main.py"')).toThrow(
    /expected only one of them/,
  );
});
