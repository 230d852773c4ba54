// Contract 7: deploys versions over HTTP to a stack with two workers: from a folder to a running version, and back.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ONE_OF_EACH } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Deployer, type VersionAnswer } from '../client/deployer.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

let stack: TestStack;
let deployer: Deployer;
let empty: string;
beforeAll(async () => {
  empty = await mkdtemp(join(tmpdir(), 'no-apps-'));
  stack = await startTestStack({
    apps: empty,
    scale: { ...ONE_OF_EACH, worker: 2 },
    env: {
      ROLL_OUT_TIMEOUT_S: '120',
      WORKER_GRACE_S: '2',
      MAX_BUNDLE_BYTES: '200000',
      LEASE_RENEW_MS: '500',
      DEPLOYMENTS_RESCAN_MS: '60000',
    },
  });
  deployer = new Deployer(stack.port, stack.jwtSecret, 'acme');
});
afterAll(async () => {
  await stack?.stop();
  await rm(empty, { recursive: true });
});

const answering = (text: string): Record<string, string> => ({
  'main.py': `import time\ndef say():\n    return ${JSON.stringify(text)}\ndef count(n: int):\n    for i in range(n):\n        time.sleep(0.05)\n        yield f"${text} {i}"\n`,
});

const said = async (app: string): Promise<unknown> => {
  const { status, text } = await deployer.call(app, 'say');
  expect(status).toBe(200);
  return (JSON.parse(text) as { result: unknown }).result;
};

test('a folder becomes a running version, a second version replaces it, and a rollback brings the first back', async () => {
  const first = await deployer.deploy('hello', answering('one'));
  expect(first).toMatchObject({ status: 201, state: 'building' });
  const one = await deployer.settled('hello', first.version);
  expect(one).toMatchObject({ app: 'hello', state: 'active', rolling_out: false, author: 'ada' });
  expect(one.activations).toHaveLength(1);
  expect(await said('hello')).toBe('one');

  const second = await deployer.deploy('hello', answering('two'));
  expect(await deployer.settled('hello', second.version)).toMatchObject({ state: 'active' });
  expect(await said('hello')).toBe('two');
  expect(await deployer.version('hello', first.version)).toMatchObject({ state: 'retired' });

  const back = await deployer.request('POST', `/apps/hello/versions/${first.version.slice(0, 8)}/activate`);
  expect(back).toMatchObject({ status: 202, body: { version: first.version, state: 'retired' } });
  await deployer.settled('hello', first.version);
  expect(await said('hello')).toBe('one');

  const { body } = await deployer.request('GET', '/apps/hello');
  expect(body).toMatchObject({ name: 'hello', kind: 'functions', state: 'ready', version: first.version });
  expect((body.versions as VersionAnswer[]).map(({ version, state }) => [version, state])).toEqual([
    [second.version, 'retired'],
    [first.version, 'active'],
  ]);
  expect((body.activations as VersionAnswer[]).map(({ version }) => version)).toEqual([
    first.version,
    second.version,
    first.version,
  ]);
});

test('the same content is the same version, and a deployment of the active version changes nothing', async () => {
  const first = await deployer.deploy('same', answering('same'));
  await deployer.settled('same', first.version);
  expect(await deployer.deploy('same', answering('same'))).toEqual({
    status: 200,
    version: first.version,
    state: 'active',
  });
  expect((await deployer.version('same', first.version)).activations).toHaveLength(1);
});

test('a run names its version', async () => {
  const { version } = await deployer.deploy('named', answering('x'));
  await deployer.settled('named', version);
  const { text } = await deployer.call('named', 'say');
  const { body } = await deployer.request('GET', `/runs/${(JSON.parse(text) as { run_id: string }).run_id}`);
  expect(body).toMatchObject({ version });
});

const runOf = async (id: string) => (await deployer.request('GET', `/runs/${id}`)).body;

/** Functions that run one at a time on each worker, each until the named file exists. */
const gated = (text: string): Record<string, string> => ({
  'app.toml': '[scaling]\nreplica_concurrency = 1\n',
  'main.py': `import os, time\ndef pass_gate(gate: str):\n    while not os.path.exists(gate):\n        time.sleep(0.02)\n    return ${JSON.stringify(text)}\n`,
});

test('a queued run is executed by the version that was active at its acceptance, while the next version serves', async () => {
  const gate = join(empty, 'gate');
  const old = await deployer.deploy('queued', gated('old'));
  await deployer.settled('queued', old.version);
  const ids: string[] = [];
  for (let n = 0; n < 6; n++) {
    const { text } = await deployer.call('queued', 'pass_gate', { gate }, { prefer: 'respond-async' });
    ids.push((JSON.parse(text) as { run_id: string }).run_id);
  }
  expect(await runOf(ids[5] as string)).toMatchObject({ status: 'queued', version: old.version });
  const next = await deployer.deploy('queued', gated('new'));
  expect(await deployer.settled('queued', next.version)).toMatchObject({ state: 'active' });
  const { text } = await deployer.call('queued', 'pass_gate', { gate: '/' });
  expect(JSON.parse(text)).toMatchObject({ result: 'new' });
  await writeFile(gate, '');
  for (const id of ids) {
    await deployer.until(async () => (await runOf(id)).status === 'succeeded');
    expect(await runOf(id)).toMatchObject({ result: 'old', version: old.version });
  }
});

/** A version that gets new calls in steps over a minute, and is undone if over 20 % of its calls fail. */
const inSteps = (seconds: number, body: string): Record<string, string> => ({
  'app.toml': `[scaling]\nroll_out_duration_seconds = ${seconds}\n[deployment]\nabort_on_error_rate = 20\n`,
  'main.py': `def say():\n    ${body}\n`,
});

test('a version whose calls fail is undone in its first step, and the old version answers every call again', async () => {
  const old = await deployer.deploy('stepped', answering('old'));
  await deployer.settled('stepped', old.version);
  const { version } = await deployer.deploy('stepped', inSteps(600, 'raise ValueError("new")'));
  const statuses = new Set<number>();
  await deployer.until(async () => {
    statuses.add((await deployer.call('stepped', 'say')).status);
    return !(await deployer.version('stepped', version)).rolling_out;
  });
  expect(statuses).toEqual(new Set([200, 500]));
  const undone = await deployer.version('stepped', version);
  expect(undone).toMatchObject({ state: 'ready', activations: [] });
  expect(undone.reason).toMatch(/^\d+ of \d+ calls of the version failed, and abort_on_error_rate is 20 %\.$/);
  for (let n = 0; n < 20; n++) expect(await said('stepped')).toBe('old');
  const { text } = await deployer.raw('GET', `/apps/stepped/versions/${version}/log`);
  expect(text).toContain('20 % of new calls use this version');
});

test('a version takes more and more calls in steps, no call fails, and each run names its version', async () => {
  const old = await deployer.deploy('gradual', answering('old'));
  await deployer.settled('gradual', old.version);
  const { version } = await deployer.deploy('gradual', inSteps(5, 'return "new"'));
  const versions = { old: old.version, new: version };
  const results: string[] = [];
  await deployer.until(async () => {
    const { status, text } = await deployer.call('gradual', 'say');
    const { result, run_id } = JSON.parse(text) as { result: 'old' | 'new'; run_id: string };
    results.push(status === 200 ? result : text);
    expect(await runOf(run_id)).toMatchObject({ version: versions[result] });
    return !(await deployer.version('gradual', version)).rolling_out;
  });
  expect(new Set(results)).toEqual(new Set(['old', 'new']));
  expect(await deployer.version('gradual', version)).toMatchObject({ state: 'active' });
  expect(await said('gradual')).toBe('new');
});

test('a version that cannot start fails with its reason, and the active version still serves', async () => {
  const good = await deployer.deploy('careful', answering('good'));
  await deployer.settled('careful', good.version);
  const bad = await deployer.deploy('careful', { 'main.py': 'import no_such_module\n' });
  const failed = await deployer.settled('careful', bad.version);
  const reason = "import failed: ModuleNotFoundError: No module named 'no_such_module'";
  expect(failed).toMatchObject({ state: 'failed', rolling_out: false, reason });
  expect(await said('careful')).toBe('good');
  expect(await deployer.request('POST', `/apps/careful/versions/${bad.version}/activate`)).toMatchObject({
    status: 409,
  });
  // A failed version is built again.
  expect(await deployer.deploy('careful', { 'main.py': 'import no_such_module\n' })).toMatchObject({
    status: 200,
    state: 'building',
  });
  expect(await deployer.settled('careful', bad.version)).toMatchObject({ state: 'failed' });
});

const logOf = async (app: string, version: string): Promise<string[]> => {
  const { body } = await deployer.request('GET', `/apps/${app}/versions/${version}/log`);
  return (body.lines as { text: string }[]).map(({ text }) => text);
};

test('the log of a version has the lines that it prints at its start, with the traceback of a failed start', async () => {
  const bad = { 'main.py': 'print("loading")\nimport no_such_module\n' };
  const { version } = await deployer.deploy('traced', bad);
  await deployer.settled('traced', version);
  const lines = await logOf('traced', version);
  expect(lines).toEqual(expect.arrayContaining(['starting', 'loading', expect.stringMatching(/main\.py", line 2/)]));
  expect(lines.at(-1)).toMatch(/^failed: import failed: /);

  const entrypoint = '["python3", "-c", "print(1 / 0)"]';
  const server = { 'app.toml': `[runtime.custom]\nentrypoint = ${entrypoint}\n` };
  const broken = await deployer.deploy('server', server);
  expect(await deployer.settled('server', broken.version)).toMatchObject({ state: 'failed' });
  expect(await logOf('server', broken.version)).toContain('ZeroDivisionError: division by zero');
});

test('a wrong manifest fails the version', async () => {
  const { version } = await deployer.deploy('wrong', {
    ...answering('x'),
    'app.toml': '[scaling]\ntimeout = "never"\n',
  });
  const failed = await deployer.settled('wrong', version);
  expect(failed).toMatchObject({ state: 'failed' });
  expect(failed.reason).toContain('timeout');
  // The workers withdraw the app when they learn of the failure.
  await deployer.until(async () => (await deployer.call('wrong', 'say')).status === 404);
});

test('a version that is deployed without activation is ready, and can be activated later', async () => {
  const one = await deployer.deploy('later', answering('one'));
  await deployer.settled('later', one.version);
  const two = await deployer.deploy('later', answering('two'), '?activate=false');
  expect(await deployer.settled('later', two.version)).toMatchObject({ state: 'ready', activations: [] });
  expect(await said('later')).toBe('one');
  await deployer.request('POST', `/apps/later/versions/${two.version}/activate`);
  expect(await deployer.settled('later', two.version)).toMatchObject({ state: 'active' });
  expect(await said('later')).toBe('two');
});

test('the log can be followed to the end of the roll-out', async () => {
  const { version } = await deployer.deploy('followed', answering('x'));
  const { text, status } = await deployer.raw('GET', `/apps/followed/versions/${version}/log?follow=true`);
  expect(status).toBe(200);
  const events = text.split('\n\n').filter((event) => event.startsWith('event:'));
  expect(events.some((event) => event.startsWith('event: line') && event.includes('fetching the bundle'))).toBe(true);
  expect(events.at(-1)).toMatch(/^event: end\ndata: \{"app":"followed".*"state":"active"/);
});

test('calls and streams survive deployments and rollbacks: none fails, none is cut', async () => {
  const versions: string[] = [];
  for (const text of ['a', 'b']) {
    const { version } = await deployer.deploy('busy', answering(text));
    await deployer.settled('busy', version);
    versions.push(version);
  }
  let running = true;
  const outcomes: string[] = [];
  const caller = async (): Promise<void> => {
    while (running) {
      const { status, text } = await deployer.call('busy', 'say');
      outcomes.push(status === 200 ? String((JSON.parse(text) as { result: unknown }).result) : `${status} ${text}`);
    }
  };
  const reader = async (): Promise<void> => {
    while (running) {
      const { status, text } = await deployer.call('busy', 'count', { n: 10 }, { accept: 'text/event-stream' });
      const items = text.split('\n').filter((line) => line.startsWith('data: "') || /^data: [ab] \d/.test(line)).length;
      outcomes.push(status === 200 && items === 10 ? 'stream' : `stream ${status} ${text}`);
    }
  };
  const callers = [caller(), caller(), caller(), reader(), reader()];
  for (let round = 0; round < 3; round++)
    for (const version of versions) {
      await deployer.request('POST', `/apps/busy/versions/${version}/activate`);
      expect(await deployer.settled('busy', version)).toMatchObject({ state: 'active' });
    }
  running = false;
  await Promise.all(callers);
  expect(new Set(outcomes)).toEqual(new Set(['a', 'b', 'stream']));
});

test('a worker that starts later serves the active version', async () => {
  const { version } = await deployer.deploy('restarted', answering('kept'));
  await deployer.settled('restarted', version);
  await Promise.all([stack.kill('worker-1'), stack.kill('worker-2')]);
  expect(await said('restarted')).toBe('kept');
});

test('a restart of Redis keeps the versions', async () => {
  const { version } = await deployer.deploy('durable', answering('kept'));
  await deployer.settled('durable', version);
  await stack.kill('redis');
  // The gateway answers 503 until it is connected again.
  await deployer.until(async () => (await deployer.raw('GET', '/apps')).status === 200);
  expect(await deployer.version('durable', version)).toMatchObject({ state: 'active' });
  expect(await said('durable')).toBe('kept');
});

test('a deleted app takes no new calls', async () => {
  const { version } = await deployer.deploy('gone', answering('x'));
  await deployer.settled('gone', version);
  expect(await deployer.request('DELETE', '/apps/gone')).toMatchObject({ status: 202, body: { app: 'gone' } });
  await deployer.until(async () => (await deployer.call('gone', 'say')).status === 404);
  expect(await deployer.request('GET', '/apps/gone')).toMatchObject({ status: 404 });
  expect(await deployer.request('DELETE', '/apps/gone')).toMatchObject({ status: 404 });
});

test('each change is in the audit log with who, what and from where', async () => {
  const { version } = await deployer.deploy('audited', answering('x'));
  await deployer.settled('audited', version);
  const { body } = await deployer.request('GET', '/audit?limit=1');
  expect(body).toEqual({
    entries: [
      {
        time: expect.any(String),
        sub: 'ada',
        action: 'version.deploy',
        target: `audited@${version.slice(0, 12)}`,
        address: '127.0.0.1',
      },
    ],
    cursor: '1',
  });
});

test('an app reports its ready and desired replicas on all workers, also after a crash', async () => {
  const { version } = await deployer.deploy('counted', {
    'main.py': 'import os\ndef say():\n    return os.getpid()\ndef crash():\n    os._exit(1)\n',
    'app.toml': '[scaling]\nmin_replicas = 2\n',
  });
  expect(await deployer.settled('counted', version)).toMatchObject({ state: 'active' });
  const replicas = async (): Promise<unknown> => (await deployer.request('GET', '/apps/counted')).body.replicas;
  const all = JSON.stringify({ ready: 4, desired: 4 });
  await deployer.until(async () => JSON.stringify(await replicas()) === all);
  expect((await deployer.call('counted', 'crash')).status).toBe(502);
  await deployer.until(async () => JSON.stringify(await replicas()) === all);
  const { apps } = (await deployer.request('GET', '/apps')).body as { apps: { name: string; replicas: unknown }[] };
  expect(apps.find(({ name }) => name === 'counted')?.replicas).toEqual({ ready: 4, desired: 4 });
});

test.each([
  ['a body that is no archive', 422, 'invalid_bundle', () => deployer.upload('x', Buffer.from('hello'))],
  ['a bundle without an entry point', 422, 'invalid_bundle', () => deployer.deploy('x', { 'other.txt': '' })],
  [
    'another media type',
    415,
    'unsupported_media_type',
    () => deployer.upload('x', Buffer.from('x'), { 'content-type': 'application/zip' }),
  ],
  ['a bundle over the limit', 413, 'payload_too_large', () => deployer.upload('x', Buffer.alloc(200_001))],
  ['a reserved name', 404, 'not_found', () => deployer.upload('runs', Buffer.from('x'))],
  ['an unknown parameter', 400, 'invalid_request', () => deployer.upload('x?fast=true', Buffer.from('x'))],
  [
    'a token without the scope',
    403,
    'forbidden',
    () => deployer.upload('x', Buffer.from('x'), deployer.headers(['call', 'runs:read'])),
  ],
])('%s is rejected with %d', async (_, status, code, send) => {
  const answer = await send();
  expect(answer).toMatchObject({ status, error: { code } });
  expect(await deployer.request('GET', '/apps/x')).toMatchObject({ status: 404 });
});
