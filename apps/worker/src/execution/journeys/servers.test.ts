// Contract 1, "Custom runtimes": calls of an app's own web server on a whole worker.
import { rm, writeFile } from 'node:fs/promises';
import { encodeRequest, type Outcome } from '@inference-proxy/contracts';
import type { NewRun, RunEvent, RunReader } from '@inference-proxy/store';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { freePort } from '../../runtimes/http-server/ports.ts';
import { Journey, read, until } from '../testing/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await Journey.open();
});
afterEach(() => journey.closeReaders());
afterAll(() => journey.close());

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
  expect(await journey.app('server', 'ready')).toMatchObject({ kind: 'server', functions: [], preformatted: true });
  const gate = journey.path('server-gate');
  const { reader } = await journey.call(
    'server',
    'stream',
    {},
    forwarded(`/stream?${encodeURIComponent(gate)}`),
    'answer',
  );
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
  const { reader, runId } = await journey.call('server', 'gone', {}, forwarded('/gone'), 'answer');
  const { events, over } = eventsOf(reader);
  await over;
  expect(events).toMatchObject([
    { type: 'head', head: { status: 404, form: 'text' } },
    { type: 'outcome', outcome: { state: 'succeeded', streamed: false, statusCode: 404, result: Buffer.from('gone') } },
  ]);
  expect((await journey.gateway.lookUp('demo', runId))?.head?.status).toBe(404);
});

test('the run of a broken server stream ends as upstream_reset, after its items', async () => {
  const { reader, runId } = await journey.call('server', 'cut', {}, forwarded('/cut'), 'answer');
  const { events, over } = eventsOf(reader);
  await over;
  expect(events.at(-1)).toMatchObject({ outcome: { state: 'failed', items: 1, error: { code: 'upstream_reset' } } });
  expect((events.at(-1) as { outcome: Outcome }).outcome.head).toBeUndefined();
  expect((await journey.gateway.lookUp('demo', runId))?.head?.status).toBe(200);
});

test('a run without an answer of its server is retried once if its app has retry_on_crash', async () => {
  const gate = journey.path('server-once');
  const { reader } = await journey.call('server', 'once', {}, forwarded(`/once?${encodeURIComponent(gate)}`), 'answer');
  const { events, over } = eventsOf(reader);
  await over;
  expect(events.at(-1)).toMatchObject({ outcome: { state: 'succeeded', statusCode: 404 } });
});

test('two folders that name the same port are two apps, and each call reaches its own', async () => {
  const port = await freePort();
  const command = `entrypoint = ["node", "server.mjs", "--port", "${port}"]`;
  const server =
    'import { createServer } from "node:http";\ncreateServer((_, response) => response.end(process.env.APP_NAME)).listen(Number(process.argv.at(-1)));\n';
  const names = ['ported', 'shared', 'stubborn'];
  for (const name of names) await journey.write(name, 'server.mjs', server);
  const fixed = 'entrypoint = ["sh", "-c", "exec node server.mjs $WANTED"]';
  await journey.write('ported', 'app.toml', `[runtime.custom]\nport = ${port}\n${command}\n`);
  await journey.app('ported', 'ready');
  await journey.write('shared', 'app.toml', `[runtime.custom]\nport = ${port}\n${command}\n`);
  await journey.write('stubborn', 'app.toml', `[runtime.custom]\nport = ${port}\n${fixed}\n[env]\nWANTED = ${port}\n`);
  await journey.app('shared', 'ready');
  expect((await journey.app('stubborn', 'broken')).error?.message).toContain(`port ${port} is taken`);
  const request = encodeRequest({ method: 'GET', target: '/', headers: [], body: Buffer.alloc(0) });
  for (const name of ['ported', 'shared', 'ported', 'shared']) {
    const { reader } = await journey.call(name, '/', {}, { params: request }, 'answer');
    expect((await read(reader)).outcome?.result?.toString()).toContain(name);
  }
  for (const name of names) await rm(journey.path(`apps/demo/${name}`), { recursive: true });
  await until(async () => ((await journey.gateway.registry.apps('demo')).has('shared') ? undefined : true));
});
