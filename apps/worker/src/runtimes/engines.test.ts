// Contract 7: the engine of an app. Bun and Deno come from PATH, or from npm into `.data`. Without both, their tests are skipped with the
// reason.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from '@jest/globals';
import { javascriptEngine } from './engine.ts';
import { Call, reached } from './testing/calls.ts';
import { Language, resultOf } from './testing/languages.ts';

const INSTALLED = join(import.meta.dirname, '../../../../.data/engines-1');
const PACKAGES = ['bun@1.4.5', 'deno@2.9.6'];
const PATH = [process.env.PATH, join(INSTALLED, 'node_modules/.bin')].join(delimiter);

/** Returns whether an engine runs. Installs the engines at the first need. */
async function isPresent(engine: string): Promise<boolean> {
  const runs = (): Promise<unknown> => promisify(execFile)(engine, ['--version'], { env: { ...process.env, PATH } });
  try {
    await runs().catch(() => install().then(runs));
    return true;
  } catch (error) {
    console.warn(`skipped: ${engine} cannot be installed: ${(error as Error).message.slice(0, 300)}`);
    return false;
  }
}

let installing: Promise<void> | undefined;
const install = (): Promise<void> => {
  installing ??= (async () => {
    await mkdir(INSTALLED, { recursive: true });
    await writeFile(join(INSTALLED, 'package.json'), '{"private": true}');
    const options = ['--no-audit', '--no-fund', '--loglevel=error'];
    await promisify(execFile)('npm', ['install', '--prefix', INSTALLED, ...options, ...PACKAGES], { timeout: 120_000 });
  })();
  return installing;
};

const CODE = `import { setTimeout as pause } from 'node:timers/promises';
export function add({ a, b = 2 }: { a: number; b?: number }) {
  console.log('adding');
  return { sum: a + b };
}
export async function* count({ n = 3 }: { n?: number }) {
  for (let i = 0; i < n; i++) {
    yield \`Number \${i}\`;
    await pause(1);
  }
}
export function* flood({ n }: { n: number }) {
  for (let i = 0; i < n; i++) yield i;
}
export const fails = () => { throw new TypeError('no'); };
export const image = () => new Response(Buffer.from([1, 255]), { headers: { 'content-type': 'image/png' } });
export const exits = () => process.exit(3);
export async function* waits(_given: object, { signal }: { signal: AbortSignal }) {
  try {
    yield 1;
    await pause(1e6, undefined, { signal });
  } finally {
    console.log('aborted', signal.aborted);
  }
}`;

describe.each(await Promise.all(['bun', 'deno'].map(async (engine) => [engine, await isPresent(engine)] as const)))(
  '%s',
  (engine, present) => {
    const language = new Language('Node');
    afterAll(() => language.end());

    (present ? test : test.skip)('runs functions as Node does', async () => {
      const folder = await language.emptyFolder();
      await writeFile(join(folder, 'main.ts'), CODE);
      const env = { PATH, HOME: folder };
      const runtime = await language.started(100, { folder, interpreter: engine, env, cancelGraceMs: 1_000 });
      const called = (fn: string, params = {}): Call => new Call(runtime, fn, params);

      const add = called('add', { a: 1 });
      expect(await add.result()).toBe('{"sum":3}');
      expect(add.printed).toEqual(['adding']);
      expect((await called('add', { c: 1 }).ended).error?.code).toBe('invalid_input');

      const count = called('count');
      expect(await count.ended).toMatchObject({ state: 'succeeded', items: 3 });
      expect(count.items).toEqual(['Number 0', 'Number 1', 'Number 2']);
      expect(await called('flood', { n: 20_000 }).ended).toMatchObject({ state: 'succeeded', items: 20_000 });
      const paced = new Call(runtime, 'flood', { n: 20_000 }, true);
      await paced.until(() => paced.count === 256);
      paced.running?.cancel('cancelled');
      expect((await paced.ended).state).toBe('cancelled');

      expect((await called('fails').ended).error).toMatchObject({ type: 'TypeError', message: 'no' });
      const image = called('image');
      expect(await image.ended).toMatchObject({ head: { headers: [['content-type', 'image/png']] } });
      expect(image.frames.map(({ blob }) => [...blob])).toEqual([[1, 255]]);

      const waits = called('waits');
      await waits.until(() => waits.count === 1);
      waits.running?.cancel('cancelled');
      expect((await waits.ended).state).toBe('cancelled');
      expect(waits.printed).toEqual(['aborted true']);

      expect((await called('exits').ended).error).toMatchObject({ code: 'replica_crashed' });
      expect(await called('add', { a: 2 }).result()).toBe('{"sum":4}');
    });
  },
);

describe('the engine of the manifest', () => {
  const language = new Language('Node');
  afterAll(() => language.end());

  test('an engine that is absent breaks the app, with a clear message', async () => {
    await expect(javascriptEngine('/srv/app', 'bun', '/nowhere')).rejects.toThrow('bun is not on PATH. Install bun');
    await expect(javascriptEngine('/srv/app', 'bin/node', '/nowhere')).rejects.toThrow('no Node at /srv/app/bin/node');
    const folder = await language.emptyFolder();
    await writeFile(join(folder, 'node'), '#!/bin/sh\necho v20.1.0\n', { mode: 0o755 });
    await expect(javascriptEngine(folder, 'node', '/bin')).rejects.toThrow('is Node v20.1.0; 22.18 or newer is needed');
    await writeFile(join(folder, 'main.mjs'), '');
    const runtime = language.make(1, { folder, file: 'main.mjs', interpreter: 'deno', env: { PATH: '/nowhere' } });
    runtime.start();
    await reached(runtime, 'broken');
    expect(runtime.error?.message).toContain('deno is not on PATH');
  });

  test('the manifest’s Node runs the app', async () => {
    const folder = await language.appOf({ Python: '', Node: 'export const f = () => process.execPath;' });
    const runtime = await language.started(100, { folder, interpreter: process.execPath });
    expect(await resultOf(runtime, 'f')).toBe(process.execPath);
  });
});
