// Contract 1 to 5: a whole worker with a real Redis, the gateway's side of the store and real apps. Runs are executed and their items arrive.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AppDescription, encodeRequest, type Outcome } from '@inference-proxy/contracts';
import { connectRedis, createLogger, OperationsPort, phases, readSettings, Shutdown } from '@inference-proxy/platform';
import {
  DeliveryQueue,
  GatewayStore,
  Maintenance,
  type NewRun,
  newRunId,
  type RunEvent,
  type RunReader,
  Shares,
} from '@inference-proxy/store';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { freePort } from '../runtimes/http-server/ports.ts';
import { WorkerSettings } from '../settings.ts';
import { startWorker } from '../start-worker.ts';

const changing = (version: number): string => `
import os, time
def version(): return ${version}
def versions(path):
  yield ${version}
  while not os.path.exists(path): time.sleep(0.01)
  yield ${version}
`;

const APPS: Record<string, Record<string, string>> = {
  hello: {
    'main.py': `
import os, time
def add(a, b): return {"sum": a + b}
def count(n):
    for i in range(n): yield f"item {i}"
def rows(n):
    for i in range(n): yield {"i": i, "pair": [1.0, None]}
def slow(n, pause):
    for i in range(n):
        yield i
        time.sleep(pause)
def wait_for(path):
    while not os.path.exists(path): time.sleep(0.01)
def gated(path):
    yield "before"
    wait_for(path)
    yield "after"
def tidy(path):
    try:
        yield "begun"
        time.sleep(600)
    finally:
        with open(path, "w") as file: file.write("tidied")
def flood(path, size):
    i = 0
    try:
        while True:
            i += 1
            yield "x" * size
    finally:
        with open(path, "w") as file: file.write(str(i))
def counted(path, n, size):
    for i in range(n):
        with open(path, "a") as file: file.write(".")
        yield "x" * size
def fail(): raise ValueError("no such thing")
def crash(): os._exit(3)
def environment(): return dict(os.environ)
def wait(path):
    wait_for(path)
    return "waited"
`,
  },
  sleepers: {
    'main.py': `
import os, time
def meet(folder, name, n):
    yield "waits"
    open(os.path.join(folder, name), "w").close()
    while len(os.listdir(folder)) < n: time.sleep(0.05)
    yield "met"
`,
  },
  brittle: {
    'app.toml': '[scaling]\nretry_on_crash = true\n',
    'main.py':
      'import os\ndef once(path):\n  if os.path.exists(path): return "second"\n  open(path, "w").close()\n  os._exit(1)\n',
  },
  limited: {
    'app.toml': '[scaling]\nmax_output_bytes = 1000\n',
    'main.py': 'def flood():\n  while True: yield "x" * 100\n',
  },
  broken: { 'main.py': 'import nothing_of_that_name\n' },
  server: {
    'app.toml': '[runtime.custom]\nentrypoint = "node server.mjs"\n[scaling]\nretry_on_crash = true\n',
    'server.mjs': `
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
createServer((request, response) => {
  const gate = decodeURIComponent(request.url.split('?')[1] ?? '');
  if (request.url.startsWith('/stream')) {
    response.writeHead(202, { 'content-type': 'text/event-stream', 'x-own': 'yes' }).flushHeaders();
    const look = setInterval(() => {
      if (!existsSync(gate)) return;
      clearInterval(look);
      response.end('data: after\\n\\n');
    }, 10);
    request.on('close', () => clearInterval(look));
  } else if (request.url.startsWith('/cut')) {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\\n\\n', () => response.destroy());
  } else if (request.url.startsWith('/once') && !existsSync(gate)) {
    writeFileSync(gate, '');
    response.destroy();
  } else response.writeHead(404, { 'content-type': 'text/plain', 'content-length': 4 }).end('gone');
}).listen(process.env.PORT);
`,
  },
  changing: { 'main.py': changing(1) },
};

let folder: string;
let redis: TestRedis;
let gateway: GatewayStore;
let maintenance: Maintenance;
let deliveries: DeliveryQueue;
const clients: Redis[] = [];
const workers: Shutdown[] = [];
const logger = createLogger({ name: 'test', level: 'fatal' });

const path = (name: string): string => join(folder, name);
const write = async (app: string, name: string, text: string): Promise<void> => {
  await mkdir(path(`apps/demo/${app}`), { recursive: true });
  await writeFile(path(`apps/demo/${app}/${name}`), text);
};

/** Deadlines that a stop never reaches, even on a busy machine. */
const deadlines = Object.fromEntries(Object.keys(phases).map((phase) => [phase, 120_000]));

async function worker(): Promise<Shutdown> {
  const settings = new WorkerSettings(
    readSettings(WorkerSettings.schema, {
      REDIS_URL: redis.url,
      DEPLOYMENTS_DIR: path('apps'),
      LEASE_RENEW_MS: '200',
      SHUTDOWN_GRACE_S: '10',
    }),
  );
  const shutdown = new Shutdown({ logger, deadlines, exit: () => undefined });
  workers.push(shutdown);
  await startWorker({ settings, logger, shutdown, operations: new OperationsPort(), tracing: undefined });
  return shutdown;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'worker-'));
  for (const [app, files] of Object.entries(APPS))
    for (const [name, text] of Object.entries(files)) await write(app, name, text);
  redis = await testRedis();
  const connect = (name: string): Redis => {
    const client = connectRedis(redis.url, name, logger, { whileAway: 'wait' });
    clients.push(client);
    return client;
  };
  deliveries = new DeliveryQueue(connect('deliveries'), logger);
  const shared = { commands: connect('g'), deliveries, logger, shares: new Shares() };
  gateway = new GatewayStore({ ...shared, subscriber: connect('gs'), gatewayId: 'g1' });
  maintenance = new Maintenance(shared);
  gateway.start();
  maintenance.start();
  Object.assign(process.env, { REDIS_URL: redis.url, JWT_SECRET: 'not for apps' });
  await worker();
});

afterAll(async () => {
  for (const shutdown of workers) await shutdown.stop('test over');
  maintenance.stop();
  gateway.stop();
  await deliveries.close();
  for (const client of clients) client.disconnect();
  await redis.stop();
  await rm(folder, { recursive: true });
});

const readers = new Set<RunReader>();
afterEach(() => {
  for (const reader of readers) reader.close();
  readers.clear();
});

/** Waits until `check` returns a value. It polls, because the test cannot subscribe to the events of the store and the file system. */
async function until<T>(check: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await check();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const fileSays = (name: string): Promise<string> =>
  until(async () => {
    const { readFile } = await import('node:fs/promises');
    return (await readFile(path(name), 'utf8').catch(() => undefined)) || undefined;
  });

const app = (name: string, state: AppDescription['state']): Promise<AppDescription> =>
  until(async () => {
    const found = (await gateway.apps('demo')).get(name);
    return found?.state === state ? found : undefined;
  });

interface Call {
  readonly runId: string;
  readonly reader: RunReader;
}

async function call(
  name: string,
  fn: string,
  params: object,
  more: Partial<NewRun> = {},
  live: 'items' | 'answer' = 'items',
): Promise<Call> {
  const runId = newRunId();
  const { accepted, reader } = gateway.accept(
    {
      project: 'demo',
      runId,
      app: name,
      fn,
      params: Buffer.from(JSON.stringify(params)),
      promised: false,
      paced: true,
      keepMs: 60_000,
      absentMs: 0,
      queueLimit: 1_000,
      queueTimeoutMs: 60_000,
      ...more,
    },
    live,
  );
  expect(await accepted).toEqual({ state: 'accepted' });
  readers.add(reader as RunReader);
  return { runId, reader: reader as RunReader };
}

/** Reads the run's events to the outcome and returns the lines of its items. If `onItem` returns false for a line, the reader unsubscribes. */
function read(
  reader: RunReader,
  onItem: (item: string) => unknown = () => true,
): Promise<{ items: string[]; outcome?: Outcome }> {
  return new Promise((resolve, reject) => {
    const items: string[] = [];
    const subscription = reader.events().subscribe({
      next: (event) => {
        if (event.type === 'outcome') return resolve({ items, outcome: event.outcome });
        if (event.type !== 'items') return;
        for (const item of event.batch.blob.toString().split('\n')) {
          items.push(item);
          if (onItem(item) !== false) continue;
          queueMicrotask(() => subscription.unsubscribe());
          return resolve({ items });
        }
      },
      error: reject,
    });
  });
}

const run = async (name: string, fn: string, params: object, more: Partial<NewRun> = {}) =>
  read((await call(name, fn, params, more)).reader);

test('the result of a plain function arrives', async () => {
  const { items, outcome } = await run('hello', 'add', { a: 1, b: 2.5 });
  expect(items).toEqual([]);
  expect(outcome).toMatchObject({ state: 'succeeded', streamed: false, items: 0 });
  expect(outcome?.result?.toString()).toBe('{"sum":3.5}');
});

test('a generator’s items arrive in order, each once', async () => {
  const { items, outcome } = await run('hello', 'count', { n: 1_000 });
  expect(items).toEqual(Array.from({ length: 1_000 }, (_, at) => `item ${at}`));
  expect(outcome).toMatchObject({ state: 'succeeded', streamed: true, items: 1_000 });
});

test('items that are not strings arrive as the JSON the function’s process wrote', async () => {
  expect((await run('hello', 'rows', { n: 2 })).items).toEqual([
    '{"i":0,"pair":[1.0,null]}',
    '{"i":1,"pair":[1.0,null]}',
  ]);
});

test('items arrive when they are yielded, not at the end', async () => {
  const { reader, runId } = await call('hello', 'gated', { path: path('gate') });
  const arrived = Promise.withResolvers<void>();
  const all = read(reader, () => arrived.resolve());
  await arrived.promise;
  expect((await gateway.look('demo', runId))?.state).toBe('running');
  await writeFile(path('gate'), '');
  expect(await all).toMatchObject({ items: ['before', 'after'], outcome: { state: 'succeeded' } });
});

test('twenty callers of a sleeping generator stream side by side', async () => {
  // No generator ends before all generators have begun.
  const folder = path('met');
  await mkdir(folder);
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, at) => run('sleepers', 'meet', { folder, name: `${at}`, n: 20 })),
  );
  for (const { items } of all) expect(items).toEqual(['waits', 'met']);
});

test('a disconnect cancels the run, and the generator’s finally block runs', async () => {
  const { reader, runId } = await call('hello', 'tidy', { path: path('tidied') });
  await read(reader, () => false);
  reader.close();
  expect(await fileSays('tidied')).toBe('tidied');
  const record = await until(async () => {
    const found = await gateway.look('demo', runId);
    return found?.state === 'running' ? undefined : found;
  });
  expect(record).toMatchObject({ state: 'cancelled', items: 1, outcome: { error: { code: 'cancelled' } } });
});

test('a generator stops while its reader does not read, and continues when the reader reads again', async () => {
  const total = 6_000;
  const { reader } = await call('hello', 'counted', { path: path('counted'), n: total, size: 1_000 });
  const first = await read(reader, () => false);
  const produced = async (): Promise<number> => (await fileSays('counted')).length;
  // The generator yields thousands of items a second, so an unchanged number between two distant looks proves that it stopped.
  let before = -1;
  const stopped = await until(async () => {
    const now = await produced();
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (now === before) return now;
    before = now;
    return undefined;
  });
  expect(stopped).toBeLessThan(total - 1_000);
  const { items, outcome } = await read(reader);
  expect(outcome).toMatchObject({ state: 'succeeded', items: total });
  expect(first.items.length + items.length).toBeLessThanOrEqual(total);
  expect(await produced()).toBe(total);
});

test('an exception becomes the run’s error with its class and text', async () => {
  const { outcome } = await run('hello', 'fail', {});
  expect(outcome).toMatchObject({
    state: 'failed',
    error: { code: 'function_error', type: 'ValueError', message: 'no such thing' },
  });
});

test('wrong parameters are reported as the caller’s error', async () => {
  expect((await run('hello', 'add', { a: 1 })).outcome).toMatchObject({
    state: 'failed',
    error: { code: 'invalid_input' },
  });
});

test('a process that dies ends its run as replica_crashed, and the next call works', async () => {
  expect((await run('hello', 'crash', {})).outcome).toMatchObject({
    state: 'failed',
    error: { code: 'replica_crashed' },
  });
  expect((await run('hello', 'add', { a: 1, b: 1 })).outcome).toMatchObject({ state: 'succeeded' });
});

test('a crashed run is retried once if its app has retry_on_crash', async () => {
  const { outcome } = await run('brittle', 'once', { path: path('crashed-once') });
  expect(outcome?.result?.toString()).toBe('"second"');
});

const forwarded = (target: string): Partial<NewRun> => ({
  params: encodeRequest({ method: 'GET', target, headers: [], body: Buffer.alloc(0) }),
});

/** Returns the kinds of a reader's events in order, with complete heads. */
function eventsOf(reader: RunReader): { events: RunEvent[]; over: Promise<void> } {
  const events: RunEvent[] = [];
  const over = new Promise<void>((complete, error) => {
    reader.events().subscribe({ next: (event) => events.push(event), error, complete });
  });
  return { events, over };
}

test('a web server is announced as a server, and the head of its stream reaches the reader before the first item', async () => {
  expect(await app('server', 'ready')).toMatchObject({ kind: 'server', functions: [], preformatted: true });
  const gate = path('server-gate');
  const { reader } = await call('server', 'stream', {}, forwarded(`/stream?${encodeURIComponent(gate)}`), 'answer');
  const { events, over } = eventsOf(reader);
  await until(() => events.length > 0);
  expect(events).toEqual([{ type: 'head', head: expect.objectContaining({ status: 202, form: 'sse' }) }]);
  await writeFile(gate, '');
  await over;
  expect(events.map(({ type }) => type)).toEqual(['head', 'items', 'outcome']);
  expect(events[2]).toMatchObject({
    outcome: { state: 'succeeded', items: 1, statusCode: 202, head: { status: 202 } },
  });
}, 180_000);

test('the complete answer of a server is the result of its run, with its head', async () => {
  const { reader, runId } = await call('server', 'gone', {}, forwarded('/gone'), 'answer');
  const { events, over } = eventsOf(reader);
  await over;
  expect(events).toMatchObject([
    { type: 'head', head: { status: 404, form: 'text' } },
    { type: 'outcome', outcome: { state: 'succeeded', streamed: false, statusCode: 404, result: Buffer.from('gone') } },
  ]);
  expect((await gateway.look('demo', runId))?.head?.status).toBe(404);
});

test('the run of a broken server stream ends as upstream_reset, after its items', async () => {
  const { reader, runId } = await call('server', 'cut', {}, forwarded('/cut'), 'answer');
  const { events, over } = eventsOf(reader);
  await over;
  expect(events.at(-1)).toMatchObject({ outcome: { state: 'failed', items: 1, error: { code: 'upstream_reset' } } });
  expect((events.at(-1) as { outcome: Outcome }).outcome.head).toBeUndefined();
  expect((await gateway.look('demo', runId))?.head?.status).toBe(200);
});

test('a run without an answer of its server is retried once if its app has retry_on_crash', async () => {
  const gate = path('server-once');
  const { reader } = await call('server', 'once', {}, forwarded(`/once?${encodeURIComponent(gate)}`), 'answer');
  const { events, over } = eventsOf(reader);
  await over;
  expect(events.at(-1)).toMatchObject({ outcome: { state: 'succeeded', statusCode: 404 } });
});

test('a run that is stored whole is limited in bytes, and its valid items stay', async () => {
  const { items, outcome } = await run('limited', 'flood', {}, { promised: true, paced: false });
  expect(outcome).toMatchObject({ state: 'failed', error: { code: 'output_too_large' } });
  expect(items.length).toBeLessThanOrEqual(10);
});

test('the environment of a function contains no variable of the worker', async () => {
  const { outcome } = await run('hello', 'environment', {});
  expect(outcome?.result?.toString()).toMatch(/"PATH"/);
  expect(outcome?.result?.toString()).not.toMatch(/REDIS_URL|JWT_SECRET/);
});

test('an app that cannot be imported is announced as broken with the reason, and an edit repairs it', async () => {
  expect((await app('broken', 'broken')).error).toMatchObject({
    code: 'app_failed_to_start',
    message: expect.stringContaining('nothing_of_that_name'),
  });
  await write('broken', 'main.py', 'def answer(): return 42\n');
  expect((await app('broken', 'ready')).functions.map(({ name }) => name)).toEqual(['answer']);
  expect((await run('broken', 'answer', {})).outcome?.result?.toString()).toBe('42');
});

test('changed code is loaded, and a run of the old code ends with the old code', async () => {
  const old = await app('changing', 'ready');
  const { reader } = await call('changing', 'versions', { path: path('changed') });
  const before = await read(reader, () => false);
  await write('changing', 'main.py', changing(2));
  await until(async () => ((await app('changing', 'ready')).version === old.version ? undefined : true));
  expect((await run('changing', 'version', {})).outcome?.result?.toString()).toBe('2');
  await writeFile(path('changed'), '');
  expect([...before.items, ...(await read(reader)).items]).toEqual(['1', '1']);
});

test('a new app is served, and an app is withdrawn when its folder is removed', async () => {
  await write('young', 'main.py', 'def answer(): return "new"\n');
  await app('young', 'ready');
  expect((await run('young', 'answer', {})).outcome?.result?.toString()).toBe('"new"');
  await rm(path('apps/demo/young'), { recursive: true });
  await until(async () => ((await gateway.apps('demo')).has('young') ? undefined : true));
});

const paged = (size: number): string => `
import os, time
def pages(path):
    yield "x" * ${size}
    while not os.path.exists(path): time.sleep(0.01)
    yield "y" * ${size}
`;

test('the folder is removed during a run: the generator yields its items to its end', async () => {
  await write('removed', 'main.py', paged(10));
  await app('removed', 'ready');
  const { reader } = await call('removed', 'pages', { path: path('removed-go') }, { paced: false });
  const remove = async () => {
    await rm(path('apps/demo/removed'), { recursive: true });
    await until(async () => ((await gateway.apps('demo')).has('removed') ? undefined : true));
    await writeFile(path('removed-go'), '');
  };
  const whole = read(reader, (item) => (item.startsWith('x') ? remove() : true));
  expect(await whole).toMatchObject({ items: ['x'.repeat(10), 'y'.repeat(10)], outcome: { state: 'succeeded' } });
});

test('a run of the old code keeps the output limit of the old manifest', async () => {
  await write('shrunk', 'main.py', paged(600));
  const old = await app('shrunk', 'ready');
  const { reader } = await call('shrunk', 'pages', { path: path('shrunk-go') }, { paced: false });
  const shrink = async () => {
    await write('shrunk', 'app.toml', '[scaling]\nmax_output_bytes = 1000\n');
    await until(async () => ((await app('shrunk', 'ready')).version === old.version ? undefined : true));
    await writeFile(path('shrunk-go'), '');
  };
  const whole = read(reader, (item) => (item.startsWith('x') ? shrink() : true));
  expect(await whole).toMatchObject({ outcome: { state: 'succeeded', items: 2 } });
  const next = await call('shrunk', 'pages', { path: path('shrunk-go') }, { paced: false });
  expect((await read(next.reader)).outcome).toMatchObject({ error: { code: 'output_too_large' } });
});

test('a run of the old code is retried after a crash if the old manifest has retry_on_crash', async () => {
  const code =
    'import os, time\ndef once(begun, go):\n  if os.path.exists(go): return "second"\n  open(begun, "w").write("1")\n  while not os.path.exists(go): time.sleep(0.01)\n  os._exit(1)\n';
  await write('retried', 'app.toml', '[scaling]\nretry_on_crash = true\n');
  await write('retried', 'main.py', code);
  const old = await app('retried', 'ready');
  const { reader } = await call('retried', 'once', { begun: path('retried-begun'), go: path('retried-go') });
  await fileSays('retried-begun');
  await write('retried', 'app.toml', '');
  await until(async () => ((await app('retried', 'ready')).version === old.version ? undefined : true));
  await writeFile(path('retried-go'), '');
  expect((await read(reader)).outcome?.result?.toString()).toBe('"second"');
});

test('a folder without an entry point is announced as broken with the reason, and served when it has an entry point', async () => {
  await write('entryless', 'app.py', 'def answer(): return 42\n');
  expect((await app('entryless', 'broken')).error?.message).toContain('no entry point: expected main.py, app.toml');
  await write('entryless', 'main.py', 'import app\ndef answer(): return app.answer()\n');
  await app('entryless', 'ready');
  expect((await run('entryless', 'answer', {})).outcome?.result?.toString()).toBe('42');
});

test('an app that lost its entry point keeps its version, and the reason is announced beside it', async () => {
  await write('emptied', 'main.py', 'def answer(): return 1\n');
  await write('emptied', 'notes.md', 'remains');
  await app('emptied', 'ready');
  await rm(path('apps/demo/emptied/main.py'));
  await until(async () => (await app('emptied', 'ready')).failed?.error.message.includes('no entry point'));
  expect((await run('emptied', 'answer', {})).outcome?.result?.toString()).toBe('1');
  await rm(path('apps/demo/emptied'), { recursive: true });
  await until(async () => ((await gateway.apps('demo')).has('emptied') ? undefined : true));
});

test('two folders that name the same port are two apps, and each call reaches its own', async () => {
  const port = await freePort();
  const command = `entrypoint = ["node", "server.mjs", "--port", "${port}"]`;
  const server =
    'import { createServer } from "node:http";\ncreateServer((_, response) => response.end(process.env.APP_NAME)).listen(Number(process.argv.at(-1)));\n';
  const names = ['ported', 'shared', 'stubborn'];
  for (const name of names) await write(name, 'server.mjs', server);
  const fixed = 'entrypoint = ["sh", "-c", "exec node server.mjs $WANTED"]';
  await write('ported', 'app.toml', `[runtime.custom]\nport = ${port}\n${command}\n`);
  await app('ported', 'ready');
  await write('shared', 'app.toml', `[runtime.custom]\nport = ${port}\n${command}\n`);
  await write('stubborn', 'app.toml', `[runtime.custom]\nport = ${port}\n${fixed}\n[env]\nWANTED = ${port}\n`);
  await app('shared', 'ready');
  expect((await app('stubborn', 'broken')).error?.message).toContain(`port ${port} is taken`);
  const request = encodeRequest({ method: 'GET', target: '/', headers: [], body: Buffer.alloc(0) });
  for (const name of ['ported', 'shared', 'ported', 'shared']) {
    const { reader } = await call(name, '/', {}, { params: request }, 'answer');
    expect((await read(reader)).outcome?.result?.toString()).toContain(name);
  }
  for (const name of names) await rm(path(`apps/demo/${name}`), { recursive: true });
  await until(async () => ((await gateway.apps('demo')).has('shared') ? undefined : true));
});

test('a version that fails is announced beside the version that serves', async () => {
  await write('mended', 'main.py', 'def answer(): return 1\n');
  const old = await app('mended', 'ready');
  await write('mended', 'main.py', 'import no_such_module\n');
  const { failed } = await until(async () => {
    const found = await app('mended', 'ready');
    return found.failed && found;
  });
  expect(failed).toMatchObject({ version: expect.not.stringContaining(old.version) });
  expect(failed?.error.message).toContain('no_such_module');
  expect((await run('mended', 'answer', {})).outcome?.result?.toString()).toBe('1');
  await write('mended', 'main.py', 'def answer(): return 2\n');
  await until(async () => ((await app('mended', 'ready')).version === old.version ? undefined : true));
  expect((await app('mended', 'ready')).failed).toBeUndefined();
  expect((await run('mended', 'answer', {})).outcome?.result?.toString()).toBe('2');
});

test('a pause of the store loses no item and no run', async () => {
  const { reader } = await call('hello', 'slow', { n: 30, pause: 0.1 });
  let paused = false;
  const { items, outcome } = await read(reader, () => {
    if (paused) return;
    paused = true;
    redis.pause();
    setTimeout(() => redis.resume(), 3_000);
  });
  expect(items).toEqual(Array.from({ length: 30 }, (_, at) => `${at}`));
  expect(outcome).toMatchObject({ state: 'succeeded', items: 30 });
});

test('after the store comes back empty, the apps are announced again, and a forgotten run is stopped', async () => {
  const { reader } = await call('hello', 'tidy', { path: path('tidied-when-lost') });
  await read(reader, () => false);
  await redis.restart({ kill: true });
  expect(await fileSays('tidied-when-lost')).toBe('tidied');
  await app('hello', 'ready');
  const { outcome } = await until(() => run('hello', 'add', { a: 3, b: 4 }).catch(() => undefined));
  expect(outcome?.result?.toString()).toBe('{"sum":7}');
});

test('after the store is emptied without a broken connection, the apps are announced again, and calls are answered', async () => {
  await clients[0]?.flushall();
  const { outcome } = await until(async () => {
    const apps = await gateway.apps('demo');
    return apps.has('hello') ? run('hello', 'add', { a: 1, b: 1 }) : undefined;
  });
  expect(outcome?.result?.toString()).toBe('{"sum":2}');
});

test('a stopping worker waits for its runs and interrupts the runs that do not end', async () => {
  const [first] = workers as [Shutdown];
  const short = await call('hello', 'wait', { path: path('waiting') });
  const long = await call('hello', 'tidy', { path: path('tidied-at-stop') });
  await until(async () => (await gateway.look('demo', short.runId))?.state === 'running' || undefined);
  await read(long.reader, () => false);
  const ends = Promise.all([read(short.reader), read(long.reader)]);
  const stopping = first.stop('test');
  await writeFile(path('waiting'), '');
  expect(await stopping).toBe(true);
  const [ended, interrupted] = await ends;
  expect(ended.outcome?.result?.toString()).toBe('"waited"');
  expect(interrupted.outcome).toMatchObject({ state: 'failed', error: { code: 'unavailable' } });
  expect(await fileSays('tidied-at-stop')).toBe('tidied');
});

test('runs that wait without a worker are taken by the next worker', async () => {
  const { reader } = await call('hello', 'add', { a: 2, b: 2 });
  await worker();
  expect((await read(reader)).outcome?.result?.toString()).toBe('{"sum":4}');
});
