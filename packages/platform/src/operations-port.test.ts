// Contract 6, "Ports and pages": the pages of a real operations port.
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { Gauge } from './metrics.ts';
import { OperationsPort } from './operations-port.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function listening(stopping?: () => boolean) {
  const operations = new OperationsPort(stopping);
  closing.push(() => operations.close());
  const port = await operations.listen('127.0.0.1', 0);
  const get = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  };
  return { operations, port, get };
}

test('a service is alive from its start, and not ready until its readiness check passes', async () => {
  const { operations, get } = await listening();
  expect(await get('/healthz')).toMatchObject({ status: 200, text: '{"status":"alive"}' });
  expect(await get('/readyz')).toMatchObject({ status: 503, text: '{"status":"not ready","why":"it is starting"}' });
  let why: string | undefined = 'the run store does not answer';
  operations.readyWhen(() => why);
  expect(await get('/readyz?verbose')).toMatchObject({ status: 503, text: expect.stringContaining(why) });
  why = undefined;
  expect(await get('/readyz')).toMatchObject({ status: 200, text: '{"status":"ready"}' });
});

test('a stopping service is alive and not ready, even if its check passes', async () => {
  let stopping = false;
  const { operations, get } = await listening(() => stopping);
  operations.readyWhen(() => undefined);
  expect(await get('/readyz')).toMatchObject({ status: 200 });
  stopping = true;
  expect(await get('/readyz')).toMatchObject({ status: 503, text: expect.stringContaining('stopping') });
  expect(await get('/healthz')).toMatchObject({ status: 200 });
});

test('/metrics has the metrics of the process, with the event-loop lag, and the metrics of the service', async () => {
  const { operations, get } = await listening();
  new Gauge({ name: 'example_open', help: 'Open examples.', registers: [operations.registry] }).set(3);
  const { status, headers, text } = await get('/metrics');
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(text).toContain('# HELP example_open Open examples.\n# TYPE example_open gauge\nexample_open 3\n');
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
    expect(text).toMatch(new RegExp(`^${name} `, 'm'));
});

test('a mounted handler answers its path and all paths below it', async () => {
  const { operations, get } = await listening();
  operations.mount('/queues', (request, response) => void response.end(`at ${request.url}`));
  expect(await get('/queues')).toMatchObject({ status: 200, text: 'at /queues' });
  expect(await get('/queues/deliveries?page=2')).toMatchObject({ text: 'at /queues/deliveries?page=2' });
  expect(await get('/queuesque')).toMatchObject({ status: 404 });
});

test('an unknown path is 404, and a method that writes is 405', async () => {
  const { get } = await listening();
  expect(await get('/')).toMatchObject({ status: 404 });
  expect(await get('/constructor')).toMatchObject({ status: 404 });
  const posted = await get('/healthz', { method: 'POST' });
  expect(posted.status).toBe(405);
  expect(posted.headers.get('allow')).toBe('GET, HEAD');
  expect(await get('/healthz', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
});

test('a page that fails answers with the reason, and other pages still work', async () => {
  const { operations, get } = await listening();
  new Gauge({
    name: 'example_broken',
    help: 'Cannot be read.',
    registers: [operations.registry],
    collect: () => Promise.reject(new Error('not today')),
  });
  expect(await get('/metrics')).toMatchObject({ status: 500, text: expect.stringContaining('not today') });
  operations.mount('/half', (_, response) => {
    response.writeHead(200).write('half');
    throw new Error('no');
  });
  await expect(get('/half')).rejects.toThrow();
  expect(await get('/healthz')).toMatchObject({ status: 200 });
});

test('closing ends idle connections too, and a second close has no effect', async () => {
  const { operations, port } = await listening();
  const socket = connect(port, '127.0.0.1');
  const ended = new Promise((resolve) => socket.once('close', resolve));
  await new Promise((resolve) => socket.once('connect', resolve));
  await operations.close();
  await ended;
  await operations.close();
});

test('listening on a port in use throws the system’s error', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  closing.push(() => new Promise((resolve) => other.close(resolve)));
  const operations = new OperationsPort();
  await expect(operations.listen('127.0.0.1', (other.address() as AddressInfo).port)).rejects.toThrow('EADDRINUSE');
});
