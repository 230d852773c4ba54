// Contract 1, "Custom runtimes": readers get the head of a custom runtime's answer first, even if messages are lost.
import type { AnswerHead } from '@inference-proxy/contracts';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  type GatewayStore,
  newRunId,
  type RunEvent,
  type RunReader,
  type TakenRun,
  type WorkerStore,
} from '../index.ts';
import { append, call, collect, RealStore, takeOne, until } from './real-store.ts';

const STREAM: AnswerHead = { status: 200, headers: [['content-type', 'text/event-stream']], form: 'sse' };
const WHOLE: AnswerHead = { status: 404, headers: [['content-type', 'application/octet-stream']], form: 'binary' };
const BYTES = Buffer.from([0, 255, 10, 13, 128]);
let store: RealStore;
let gateway: GatewayStore;
beforeAll(async () => {
  store = await RealStore.open();
  gateway = store.gateway('g1');
});
afterAll(() => store.close());

const kinds = (events: readonly RunEvent[]): string[] =>
  events.map((event) => (event.type === 'items' ? event.batch.blob.toString() : event.type));
const succeed = (worker: WorkerStore, { project, runId, token }: TakenRun, head: AnswerHead, items: number) =>
  worker.end(project, {
    runId,
    token,
    outcome: {
      state: 'succeeded',
      items,
      streamed: head.form === 'sse',
      runTimeMs: '1',
      head,
      statusCode: head.status,
      ...(head.form === 'binary' && { result: BYTES }),
    },
  });

test('a reader gets the head of a stream before any item exists', async () => {
  const project = newRunId();
  const worker = await store.worker('w1', project);
  const { accepted, reader } = gateway.acceptor.accept(call(project), 'answer');
  await accepted;
  const events: RunEvent[] = [];
  const over = new Promise<void>((complete) =>
    (reader as RunReader).events().subscribe({ next: (event) => events.push(event), complete }),
  );
  const run = await takeOne(worker, project);
  await worker.head(project, { ...run, head: STREAM });
  await until(() => events.length === 1);
  expect(events[0]).toEqual({ type: 'head', head: STREAM });
  await append(worker, run, 1, 'a');
  await succeed(worker, run, STREAM, 1);
  await over;
  expect(kinds(events)).toEqual(['head', 'a', 'outcome']);
});

test('a reader gets a whole answer as its head and then its bytes', async () => {
  const project = newRunId();
  const worker = await store.worker('w2', project);
  const { accepted, reader } = gateway.acceptor.accept(call(project), 'answer');
  await accepted;
  const events = collect(reader as RunReader);
  const run = await takeOne(worker, project);
  await succeed(worker, run, WHOLE, 0);
  const [first, last] = await events;
  expect(first).toEqual({ type: 'head', head: WHOLE });
  expect(last).toMatchObject({ type: 'outcome', outcome: { head: WHOLE, statusCode: 404, result: BYTES } });
  const record = await gateway.lookUp(project, run.runId);
  expect(record).toMatchObject({ head: WHOLE, outcome: { head: WHOLE, result: BYTES } });
  const { runs } = await gateway.list(project, { limit: 1 });
  expect(runs[0]?.outcome?.statusCode).toBe(404);
});

test('readers of ended and open streams get the head first, and readers from the middle get none', async () => {
  const project = newRunId();
  const worker = await store.worker('w3', project);
  await gateway.acceptor.accept(call(project, { promised: true }), 'none').accepted;
  const run = await takeOne(worker, project);
  await worker.head(project, { ...run, head: STREAM });
  await append(worker, run, 1, 'a', 'b');
  const joined: RunEvent[] = [];
  const reader = gateway.read(project, run.runId, 'answer', 0);
  const over = new Promise<void>((complete) => reader.events().subscribe({ next: (e) => joined.push(e), complete }));
  await until(() => joined.length === 2);
  await append(worker, run, 3, 'c');
  await succeed(worker, run, STREAM, 3);
  await over;
  expect(kinds(joined)).toEqual(['head', 'a\nb', 'c', 'outcome']);
  const again = await collect(gateway.read(project, run.runId, 'answer', 0));
  expect(kinds(again)).toEqual(['head', 'a\nb', 'c', 'outcome']);
  expect(kinds(await collect(gateway.read(project, run.runId, 'answer', 2)))).toEqual(['c', 'outcome']);
  expect(kinds(await collect(gateway.read(project, run.runId, 'items', 0)))).toEqual(['a\nb', 'c', 'outcome']);
});

test('a reader that stopped at the head continues after it', async () => {
  const project = newRunId();
  const worker = await store.worker('w4', project);
  const { accepted, reader } = gateway.acceptor.accept(call(project), 'answer');
  await accepted;
  const paused = new Promise<RunEvent>((resolve) => {
    const subscription = (reader as RunReader).events().subscribe((event) => {
      subscription.unsubscribe();
      resolve(event);
    });
  });
  const run = await takeOne(worker, project);
  await worker.head(project, { ...run, head: STREAM });
  expect((await paused).type).toBe('head');
  await append(worker, run, 1, 'a');
  await succeed(worker, run, STREAM, 1);
  expect(kinds(await collect(reader as RunReader))).toEqual(['a', 'outcome']);
});
