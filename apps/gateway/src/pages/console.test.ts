// Contract 6: `GET /console` serves the files of the console's build, with a strict policy and hashed names.
import 'reflect-metadata';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@inference-proxy/platform';
import { newRunId } from '@inference-proxy/store';
import { type Answer, type RequestOptions, request } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { ErrorFilter } from '../http/error.filter.ts';
import { httpServer } from '../http/server.ts';
import { ConsoleController } from './console.controller.ts';
import { ConsoleFiles } from './console-files.ts';

/** The gateway's HTTP server with the page alone. */
interface ServedPage {
  readonly get: (path: string, options?: RequestOptions) => Promise<Answer>;
  readonly close: () => Promise<void>;
}

async function served(files: ConsoleFiles): Promise<ServedPage> {
  const filter = new ErrorFilter(createLogger({ name: 'gateway', destination: { write: () => {} } }), () => {});
  const providers = [
    { provide: ConsoleFiles, useValue: files },
    { provide: APP_FILTER, useValue: filter },
  ];
  const module = { module: class Pages {}, controllers: [ConsoleController], providers };
  const limits = { requestMs: 60_000, longestMs: 60_000, stallMs: 60_000 };
  const server = httpServer({ filter, newRequestId: newRunId, origins: new Set(), ...limits });
  const app = await NestFactory.create(module, server, { logger: false, bodyParser: false });
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return { get: (path, options) => request(port, path, { method: 'GET', ...options }), close: () => app.close() };
}

let page: ServedPage;
let without: ServedPage;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'console-'));
  await mkdir(join(folder, 'assets'));
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>console</title>');
  await writeFile(join(folder, 'assets', 'index-1f2e3d.js'), `export const text = '${'x'.repeat(2000)}';`);
  await writeFile(join(folder, 'assets', 'notes.txt'), 'no file of a page');
  await writeFile(join(folder, 'secret.js'), 'outside of assets');
  page = await served(new ConsoleFiles(true, folder));
  without = await served(new ConsoleFiles(false, folder));
});
afterAll(async () => {
  await Promise.all([page.close(), without.close()]);
  await rm(folder, { recursive: true });
});

const get = (path: string, headers = {}) => page.get(path, { headers });

test.each(['/console', '/console/', '/console?x=1', '/console/runs/1', '/console/secret.js'])(
  '%s is the page, which browsers ask for again',
  async (path) => {
    const answer = await get(path);
    expect([answer.status, answer.text]).toEqual([200, '<!doctype html><title>console</title>']);
    expect(answer.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
    expect((await get(path, { 'if-none-match': String(answer.headers.etag) })).status).toBe(304);
  },
);

test('a file with a hash in its name is compressed and kept for a year', async () => {
  const answer = await get('/console/assets/index-1f2e3d.js', { 'accept-encoding': 'gzip' });
  expect(answer.status).toBe(200);
  expect(answer.headers).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'content-encoding': 'gzip',
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'Accept-Encoding',
  });
  expect(Number(answer.headers['content-length'])).toBeLessThan(200);
  expect((await get('/console/assets/index-1f2e3d.js')).headers).not.toHaveProperty('content-encoding');
});

test('every answer forbids frames, sniffing, other hosts and inline scripts', async () => {
  for (const path of ['/console', '/console/assets/index-1f2e3d.js']) {
    const { headers } = await get(path);
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
      ]),
    );
    expect(policy.join()).not.toContain('unsafe');
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
    });
  }
});

test.each([
  'assets/none.js',
  'assets/notes.txt',
  'assets/..%2Findex.html',
  'assets/../secret.js',
  'assets/%2e%2e/secret.js',
  'assets/..%5csecret.js',
  'assets/',
  'assets/constructor',
  'assets/.js',
])('there is no file %s', async (name) => {
  expect((await get(`/console/${name}`)).status).toBe(404);
});

test('another method returns 405, and `CONSOLE=false` removes the page', async () => {
  expect((await page.get('/console', { method: 'POST', body: '{}' })).status).toBe(405);
  expect((await without.get('/console')).status).toBe(404);
  expect((await without.get('/console/assets/index-1f2e3d.js')).status).toBe(404);
});
