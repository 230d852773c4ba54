// Contract 7, "Secrets": an app's secrets are variables of its processes only. Two workers, an app of versions and an app of a folder.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { redisAddress } from '@inference-proxy/platform';
import { ONE_OF_EACH } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Deployer } from '../client/deployer.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

const MAIN = `import os, time
def read(name: str):
    return os.environ.get(name)
def everything():
    return dict(os.environ)
def count(n: int):
    for i in range(n):
        time.sleep(0.05)
        yield i
`;
const VALUE = 'a-value-that-nobody-may-see-91827';

let stack: TestStack;
let deployer: Deployer;
let apps: string;
beforeAll(async () => {
  apps = await mkdtemp(join(tmpdir(), 'secret-apps-'));
  await mkdir(join(apps, 'acme', 'folder'), { recursive: true });
  await writeFile(join(apps, 'acme', 'folder', 'main.py'), MAIN);
  stack = await startTestStack({ apps, scale: { ...ONE_OF_EACH, worker: 2 } });
  deployer = new Deployer(stack.port, stack.jwtSecret, 'acme');
});
afterAll(async () => {
  await stack?.stop();
  await rm(apps, { recursive: true });
});

const put = async (app: string, name: string, body: string, headers: Record<string, string> = {}) =>
  deployer.caller.request(`${deployer.caller.path}/apps/${app}/secrets/${name}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(body),
  });

const set = async (app: string, name: string, value: string): Promise<void> => {
  expect((await put(app, name, JSON.stringify({ value }))).status).toBe(204);
};

const readIn = async (app: string, name: string): Promise<unknown> => {
  const { status, text } = await deployer.call(app, 'read', { name });
  return status === 200 ? (JSON.parse(text) as { result: unknown }).result : status;
};

/** Resolves when every answer of the app's workers has the value. */
const settled = (app: string, name: string, value: string | null): Promise<true> =>
  deployer.until(async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => readIn(app, name)));
    return answers.every((answer) => answer === value);
  });

test('a secret that was set before the first deployment is a variable of the first process', async () => {
  await set('early', 'API_KEY', VALUE);
  const { version } = await deployer.deploy('early', { 'main.py': MAIN });
  expect(await deployer.settled('early', version)).toMatchObject({ state: 'active' });
  expect(await readIn('early', 'API_KEY')).toBe(VALUE);
});

test.each(['folder', 'versions'])(
  'setting and removing a secret restarts an app of %s without a lost call or a cut stream',
  async (app) => {
    if (app === 'versions') {
      const { version } = await deployer.deploy(app, { 'main.py': MAIN });
      await deployer.settled(app, version);
    }
    await settled(app, 'API_KEY', null);
    let running = true;
    const failures: string[] = [];
    const caller = async (): Promise<void> => {
      while (running) {
        const { status, text } = await deployer.call(app, 'read', { name: 'API_KEY' });
        if (status !== 200) failures.push(`${status} ${text}`);
      }
    };
    const reader = async (): Promise<void> => {
      while (running) {
        const { status, text } = await deployer.call(app, 'count', { n: 20 }, { accept: 'text/event-stream' });
        if (status !== 200 || !text.includes('data: 19')) failures.push(`stream ${status} ${text}`);
      }
    };
    const callers = [caller(), caller(), reader()];
    await set(app, 'API_KEY', VALUE);
    await settled(app, 'API_KEY', VALUE);
    await set(app, 'API_KEY', 'second');
    await settled(app, 'API_KEY', 'second');
    expect((await deployer.raw('DELETE', `/apps/${app}/secrets/API_KEY`)).status).toBe(204);
    await settled(app, 'API_KEY', null);
    running = false;
    await Promise.all(callers);
    expect(failures).toEqual([]);
  },
);

test('the list has names and dates, and no answer, log line, process list or Redis key has a value', async () => {
  const names = ['A_KEY', 'B_KEY'];
  for (const name of names) await set('early', name, VALUE);
  await settled('early', 'B_KEY', VALUE);
  const { body } = await deployer.request('GET', '/apps/early/secrets');
  expect(body).toEqual({
    secrets: ['API_KEY', ...names].sort().map((name) => ({ name, updated_at: expect.stringMatching(/^\d{4}-.*Z$/) })),
  });
  const { text: audit } = await deployer.raw('GET', '/audit');
  expect(audit).toContain('"action":"secret.set","target":"early/A_KEY"');
  expect(audit).not.toContain(VALUE);
  const { text: other } = await deployer.call('folder', 'everything');
  expect(other).not.toContain(VALUE);
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'args']);
  expect(stdout).not.toContain(VALUE);
  expect(stack.logs()).not.toContain(VALUE);
  const redis = new Redis({ ...redisAddress(stack.redisUrl) });
  const keys = await redis.keys('*secret*');
  // The master copies, their revisions, and copies that workers have fetched within the last minute.
  expect(keys.length).toBeGreaterThan(2);
  for (const key of keys) expect((await redis.dumpBuffer(key))?.includes(VALUE)).toBe(false);
  redis.disconnect();
});

test('a worker that starts later receives its copy', async () => {
  await settled('early', 'API_KEY', VALUE);
  await Promise.all([stack.kill('worker-1'), stack.kill('worker-2')]);
  expect(await readIn('early', 'API_KEY')).toBe(VALUE);
});

test.each([
  ['a lower-case name', 'api_key', '{"value": "x"}', 400],
  ['a name of the loader', 'LD_PRELOAD', '{"value": "x"}', 400],
  ['PATH', 'PATH', '{"value": "x"}', 400],
  ['a name of Python', 'PYTHONPATH', '{"value": "x"}', 400],
  ['a body without a value', 'A', '{}', 400],
  ['another member', 'A', '{"value": "x", "also": 1}', 400],
  ['a number', 'A', '{"value": 1}', 400],
  ['no JSON', 'A', `${VALUE}`, 400],
  ['a value with U+0000', 'A', '{"value": "a\\u0000b"}', 400],
  ['a value over 16 KiB', 'A', JSON.stringify({ value: 'x'.repeat(16_385) }), 400],
  ['a body over the limit', 'A', JSON.stringify({ value: 'x'.repeat(200_000) }), 413],
])('%s is rejected, and the answer does not show the value', async (_, name, body, status) => {
  const answer = await put('refusing', name, body);
  expect(answer.status).toBe(status);
  expect(answer.text).not.toContain(VALUE);
  expect((await deployer.request('GET', '/apps/refusing/secrets')).body).toEqual({ secrets: [] });
});

test('secrets need the scope apps:write, and a missing secret is not found', async () => {
  const headers = deployer.headers(['call', 'runs:read', 'runs:write']);
  expect((await put('early', 'API_KEY', '{"value": "x"}', headers)).status).toBe(403);
  expect((await deployer.raw('DELETE', '/apps/early/secrets/MISSING')).status).toBe(404);
});
