// docs/runs.md, "How a call is answered": each combination of options is in exactly one row, and the gateway behaves as the row says.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import type { PlayedRun } from '../../test/played-worker.ts';

const IN_TIME_S = 50;
const TOO_SHORT_S = 1;
/** Longer than a run of the first test. */
const LONG_ABSENT_S = 40;
const ABSENT_S = 1;
const REAP_MS = 50;
/** The store counts whole milliseconds. */
const ROUNDING_MS = 1;
const ASYNC = '`?async=true`';
const RESPOND = '`Prefer: respond-async`';
const BOTH = 'both';
const ASYNC_WAIT = '`?async=true` with `Prefer: wait=N`';
const WAIT = '`Prefer: wait=N`';
const RESPOND_WAIT = '`Prefer: respond-async, wait=N`';
const AFTER_S = 'cancelled after `S` s without a reader';

const DIMENSIONS = {
  asked: ['nothing', ASYNC, RESPOND, BOTH, ASYNC_WAIT, WAIT, RESPOND_WAIT],
  accept: ['JSON', 'stream'],
  promise: ['no', 'webhook', 'key', 'webhook and key'],
  onDisconnect: ['none', '`cancel`', '`continue`', '`S`'],
} as const;

interface Combination {
  readonly asked: string;
  readonly accept: string;
  readonly promise: string;
  readonly onDisconnect: string;
}

const combinations: Combination[] = DIMENSIONS.asked.flatMap((asked) =>
  DIMENSIONS.accept.flatMap((accept) =>
    DIMENSIONS.promise.flatMap((promise) =>
      DIMENSIONS.onDisconnect.map((onDisconnect) => ({ asked, accept, promise, onDisconnect })),
    ),
  ),
);

interface Row extends Combination {
  readonly answer: string;
  readonly leaving: string;
  readonly kept: string;
}

const page = readFileSync(new URL('../../../../docs/runs.md', import.meta.url), 'utf8');
const section = page.split(/^## /m).find((one) => one.startsWith('How a call is answered')) ?? '';
const rows: Row[] = section
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .slice(2)
  .map((line) => {
    const [asked = '', accept = '', promise = '', onDisconnect = '', answer = '', leaving = '', kept = ''] = line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim());
    return { asked, accept, promise, onDisconnect, answer, leaving, kept };
  });

/** Returns whether a cell names the value. Commas separate values, except inside backticks. */
const names = (cell: string, value: string): boolean =>
  cell === 'any' || (cell.match(/(?:`[^`]*`|[^,`])+/g) ?? []).some((one) => one.trim() === value);

const rowsOf = ({ asked, accept, promise, onDisconnect }: Combination): Row[] =>
  rows.filter(
    (row) =>
      names(row.asked, asked) &&
      names(row.accept, accept) &&
      names(row.promise, promise === 'no' ? 'no' : 'yes') &&
      names(row.onDisconnect, onDisconnect),
  );

let gateway: GatewayUnderTest;
const expected = new Map<string, (run: PlayedRun) => void>();

beforeAll(async () => {
  gateway = await GatewayUnderTest.start({}, undefined, { reapMs: REAP_MS });
  void handOutRuns();
});
afterAll(() => gateway.stop());

/** Hands each run to the test that expects its parameter, until the tests end. */
async function handOutRuns(): Promise<void> {
  for (;;) {
    const run = await gateway.worker.next();
    const { text } = JSON.parse(run.params) as { text: string };
    expected.get(text)?.(run);
  }
}

let calls = 0;

/** Returns the request of a combination, and a promise of its run. */
function requestOf({ asked, accept, promise, onDisconnect }: Combination, waitS: number, absentS = ABSENT_S) {
  const text = `call ${++calls}`;
  const query = new URLSearchParams();
  const prefer: string[] = [];
  if ([ASYNC, BOTH, ASYNC_WAIT].includes(asked)) query.set('async', 'true');
  if ([RESPOND, BOTH, RESPOND_WAIT].includes(asked)) prefer.push('respond-async');
  if ([WAIT, RESPOND_WAIT, ASYNC_WAIT].includes(asked)) prefer.push(`wait=${waitS}`);
  if (promise.includes('webhook')) query.set('webhookEndpoint', 'https://example.com/hook');
  if (onDisconnect !== 'none') query.set('onDisconnect', onDisconnect.replaceAll('`', '').replace('S', `${absentS}`));
  const taken = new Promise<PlayedRun>((resolve) => expected.set(text, resolve));
  const path = `/v4/${PROJECT}/chat/run?${query}`;
  const headers = {
    accept: accept === 'stream' ? 'text/event-stream' : 'application/json',
    ...(prefer.length > 0 && { prefer: prefer.join(', ') }),
    ...(promise.includes('key') && { 'idempotency-key': text }),
  };
  const applied = asked === ASYNC_WAIT ? undefined : prefer.join(', ') || undefined;
  return { taken, path, options: { body: JSON.stringify({ text }), headers }, applied };
}

async function end(run: PlayedRun, accept: string): Promise<void> {
  if (accept === 'JSON') return run.returns('"done"');
  await run.items(['done']);
  return run.stops();
}

interface LeftRun {
  readonly combination: Combination;
  readonly run: PlayedRun;
  /** A moment before the run lost its last reader (monotonic ms). */
  readonly before: number;
}

/**
 * Waits until every run that has lost its last reader earlier has met its fate. For that, another run is cancelled after `ABSENT_S` without a
 * reader: a cancel of an earlier run comes first.
 */
async function fatesAreMet(): Promise<void> {
  const later = { asked: 'nothing', accept: 'JSON', promise: 'no', onDisconnect: '`S`' };
  const { taken, path, options } = requestOf(later, IN_TIME_S);
  const caller = new AbortController();
  gateway.open(path, { ...options, signal: caller.signal }).catch(() => {});
  const run = await taken;
  caller.abort();
  await gateway.worker.cancelOf(run.taken.runId);
  await cancel(run);
}

const cancel = (run: PlayedRun): Promise<void> => run.fails({ code: 'cancelled', message: 'cancelled' }, 'cancelled');

/** Expects a fate as the page words it. Ends the run as a worker does, and reads its state as a client does. */
async function expectFate({ combination, run, before }: LeftRun, fate: string | undefined): Promise<void> {
  const { runId } = run.taken;
  const cancelledAt = gateway.worker.cancelledAt.get(runId);
  if (cancelledAt === undefined) await end(run, combination.accept);
  else await cancel(run);
  const { status } = JSON.parse((await gateway.get(`/v4/${PROJECT}/runs/${runId}`)).text) as { status: string };
  expect([combination, fate, status]).toEqual([combination, fate, fate === 'continues' ? 'succeeded' : 'cancelled']);
  if (fate === AFTER_S && cancelledAt !== undefined)
    expect(cancelledAt - before).toBeGreaterThanOrEqual(ABSENT_S * 1000 - ROUNDING_MS);
}

test('every combination is in exactly one row, and every row has at least one combination', () => {
  for (const combination of combinations) expect([combination, rowsOf(combination).length]).toEqual([combination, 1]);
  expect(rows.filter((row) => !combinations.some((one) => rowsOf(one).includes(row)))).toEqual([]);
});

test.each(DIMENSIONS.asked)('with %s, a run that ends in time has the answer of its row', async (asked) => {
  const own = combinations.filter((one) => one.asked === asked);
  await Promise.all(
    own.map(async (combination) => {
      const [row] = rowsOf(combination);
      const { taken, path, options, applied } = requestOf(combination, IN_TIME_S, LONG_ABSENT_S);
      const answering = gateway.request(path, options);
      const run = await taken;
      const { promised, paced, runId } = run.taken;
      expect([row?.kept, promised]).toEqual([promised ? '`RUN_RETENTION_S`' : '`SYNC_RUN_RETENTION_S`', promised]);
      // A promised run is never paced by readers.
      expect(paced).toBe(combination.accept === 'stream' && !promised);
      await end(run, combination.accept);
      const answer = await answering;
      expect(answer.headers['x-request-id']).toBe(runId);
      if (row?.answer === '202 at once') {
        expect(answer).toMatchObject({ status: 202, text: JSON.stringify({ run_id: runId }) });
        expect(answer.headers.location).toBe(`/v4/${PROJECT}/runs/${runId}`);
        expect(answer.headers['preference-applied']).toBe(applied);
      } else if (row?.answer.startsWith('the envelope')) {
        expect(answer.status).toBe(200);
        expect(JSON.parse(answer.text)).toMatchObject({ run_id: runId, status: 'succeeded', result: 'done' });
      } else {
        expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
        expect(answer.text).toBe('data: done\n\n');
      }
    }),
  );
});

test('with `Prefer: wait=N`, the answer after N s is 202, and the run continues', async () => {
  const own = combinations.filter(({ asked }) => asked === WAIT || asked === RESPOND_WAIT);
  const left = await Promise.all(
    own.map(async (combination) => {
      const before = performance.now();
      const { taken, path, options, applied } = requestOf(combination, TOO_SHORT_S);
      const answering = gateway.request(path, options);
      const run = await taken;
      const { runId } = run.taken;
      const answer = await answering;
      expect(answer).toMatchObject({ status: 202, text: JSON.stringify({ run_id: runId }) });
      expect(answer.headers.location).toBe(`/v4/${PROJECT}/runs/${runId}`);
      expect(answer.headers['preference-applied']).toBe(applied);
      return { combination, run, before: before + TOO_SHORT_S * 1000 };
    }),
  );
  await fatesAreMet();
  for (const one of left) await expectFate(one, one.combination.onDisconnect === '`S`' ? AFTER_S : 'continues');
});

test('a disconnect has the effect that the row describes', async () => {
  const left = await Promise.all(
    combinations.map(async (combination) => {
      const before = performance.now();
      const [row] = rowsOf(combination);
      const { taken, path, options } = requestOf(combination, IN_TIME_S);
      const caller = new AbortController();
      const answering = gateway.open(path, { ...options, signal: caller.signal });
      const run = await taken;
      if (row?.answer === '202 at once') (await answering).resume();
      answering.catch(() => {});
      caller.abort();
      return { combination, leaving: row?.leaving, run, before };
    }),
  );
  await fatesAreMet();
  for (const { leaving, ...one } of left) await expectFate(one, leaving);
});

test('under a key, the joined run continues, whatever options its first call had', async () => {
  const left = await Promise.all(
    [ASYNC, WAIT].map(async (asked) => {
      const before = performance.now();
      const combination = { asked, accept: 'JSON', promise: 'key', onDisconnect: 'none' };
      const { taken, path, options } = requestOf(combination, TOO_SHORT_S);
      const caller = new AbortController();
      const headers = { 'idempotency-key': String(options.headers['idempotency-key']) };
      const first = { body: options.body, headers, signal: caller.signal };
      gateway.open(`/v4/${PROJECT}/chat/run?onDisconnect=cancel`, first).catch(() => {});
      const run = await taken;
      const { runId } = run.taken;
      const joined = await gateway.request(path, options);
      expect(joined).toMatchObject({ status: 202, text: JSON.stringify({ run_id: runId }) });
      expect(joined.headers['idempotency-replayed']).toBe('true');
      caller.abort();
      return { combination, run, before };
    }),
  );
  await fatesAreMet();
  for (const one of left) await expectFate(one, 'continues');
});
