// Contract 5 (`GET /runs/{run_id}/stream`) under random cuts, gateways and speeds: each reader gets 1 to n, once and in order, and the end.
import type { IncomingMessage } from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import type { PlayedRun } from '../../test/played-worker.ts';

/** Number of rounds, and the seed to repeat a schedule. The machine still decides which events coincide. */
const ROUNDS = Number(process.env.RESUME_ROUNDS ?? 40);
const SEED = Number(process.env.RESUME_SEED ?? Date.now() % 2 ** 31);
/** A planted bug must show within this number of rounds, which are always the same. */
const BUG_ROUNDS = 12;
const BUG_SEED = 20_261_121;

interface Connection {
  readonly gateway: 0 | 1;
  /** Number of bytes after which the connection is cut. */
  readonly bytes: number;
  /** Cut by a reset, not by an orderly end. */
  readonly reset: boolean;
}

interface Reader {
  /** The reader begins when this number of batches is written. */
  readonly from: number;
  /** The connections that are cut. The connection after them is not cut. */
  readonly cut: readonly Connection[];
  readonly lastGateway: 0 | 1;
  /** Time between two reads, ms. */
  readonly pauseMs: number;
}

interface Round {
  readonly promised: boolean;
  readonly fails: boolean;
  /** Sizes of the items, batch by batch. */
  readonly batches: readonly (readonly number[])[];
  readonly readers: readonly Reader[];
}

const gatewayIndex = fc.constantFrom<0 | 1>(0, 1);
const rounds: fc.Arbitrary<Round> = fc.record({
  promised: fc.boolean(),
  fails: fc.boolean(),
  batches: fc.array(fc.array(fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 30_000 })), { minLength: 1, maxLength: 8 }), {
    minLength: 1,
    maxLength: 25,
  }),
  readers: fc.array(
    fc.record({
      from: fc.nat({ max: 30 }),
      cut: fc.array(
        fc.record({
          gateway: gatewayIndex,
          bytes: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 200_000 })),
          reset: fc.boolean(),
        }),
        { maxLength: 8 },
      ),
      lastGateway: gatewayIndex,
      pauseMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 4 })),
    }),
    { minLength: 1, maxLength: 5 },
  ),
});

interface Seen {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

/** Returns the text of item `n`. It shows the item's number and whether it is whole. */
const itemText = (n: number, size: number): string => `${n}:${'x'.repeat(size)}:${n}`;

/** Returns the faults in the events that one reader saw. */
function judged(seen: readonly Seen[], sizes: readonly number[], fails: boolean): string[] {
  const wrong: string[] = [];
  const expected = sizes.map((size, at) => ({ id: String(at + 1), event: undefined, data: itemText(at + 1, size) }));
  const end = fails ? [{ id: String(sizes.length + 1), event: 'error', data: undefined }] : [];
  for (const [at, { id, event, data }] of [...expected, ...end].entries()) {
    const got = seen[at];
    if (got === undefined) wrong.push(`event ${id} is missing`);
    else if (got.id !== id || got.event !== event)
      wrong.push(`event ${got.id} (${got.event}) stands where ${id} should`);
    else if (data !== undefined && got.data !== data) wrong.push(`event ${id} has other text`);
    if (wrong.length > 0) return wrong;
  }
  if (seen.length > expected.length + end.length) wrong.push(`${seen.length} events, of ${sizes.length} items`);
  return wrong;
}

let gateways: readonly [GatewayUnderTest, GatewayUnderTest];
beforeAll(async () => {
  const first = await GatewayUnderTest.start({ STREAM_COMMIT_MS: '50' });
  gateways = [first, await GatewayUnderTest.start({ STREAM_COMMIT_MS: '50' }, first)];
});
afterAll(async () => {
  await gateways[1].stop();
  await gateways[0].stop();
});

/** Reads one answer until it ends or is cut. An event that is not whole then does not count. */
async function readUntilCut(answer: IncomingMessage, seen: Seen[], pauseMs: number, cut?: Connection): Promise<void> {
  const parser = createParser({ onEvent: ({ id, event, data }) => seen.push({ id, event, data }) });
  const decoder = new TextDecoder();
  let left = cut?.bytes ?? Number.POSITIVE_INFINITY;
  answer.on('error', () => {});
  if (left > 0) {
    for await (const chunk of answer) {
      const bytes = (chunk as Buffer).subarray(0, left);
      parser.feed(decoder.decode(bytes, { stream: true }));
      left -= bytes.length;
      if (left <= 0) break;
      if (pauseMs > 0) await setTimeout(pauseMs);
    }
  }
  if (cut?.reset) answer.socket.resetAndDestroy();
  else answer.destroy();
}

/** Connects again after each cut with its last id, as an EventSource does, until the answer is 204. */
async function read(run: PlayedRun, reader: Reader): Promise<Seen[]> {
  const seen: Seen[] = [];
  const path = `/v4/${PROJECT}/runs/${run.taken.runId}/stream`;
  // After the cuts follow a connection to the end, and a connection that gets 204.
  for (let n = 0; n < reader.cut.length + 2; n++) {
    const cut = reader.cut[n];
    const last = seen.at(-1)?.id;
    const answer = await gateways[cut?.gateway ?? reader.lastGateway].open(path, {
      method: 'GET',
      headers: last === undefined ? {} : { 'last-event-id': last },
    });
    if (answer.statusCode === 204) return seen;
    if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`);
    await readUntilCut(answer, seen, reader.pauseMs, cut);
  }
  throw new Error(`no 204 answer after ${seen.length} events`);
}

/** Plays a round and returns the faults in what its readers saw. */
async function played({ promised, fails, batches, readers }: Round): Promise<string[]> {
  const [first] = gateways;
  const sizes = batches.flat();
  const calling = promised
    ? first.call({ query: '?async=true', body: '{}' })
    : first.open(`/v4/${PROJECT}/chat/run?ids=true`, { body: '{}', headers: { accept: 'text/event-stream' } });
  const run = await first.worker.next();
  const whole: Seen[] = [];
  // The caller of a plain run stays connected, because the run would be cancelled with its last reader.
  const staying = promised ? calling : calling.then((answer) => readUntilCut(answer as IncomingMessage, whole, 0));
  const written = batches.map(() => Promise.withResolvers<void>());
  const reading = readers.map(async (reader) => {
    await written[Math.min(reader.from, batches.length) - 1]?.promise;
    return read(run, reader);
  });
  for (const each of reading) each.catch(() => {});
  let n = 0;
  for (const [at, batch] of batches.entries()) {
    await run.items(batch.map((size) => itemText(++n, size)));
    written[at]?.resolve();
    if (at % 4 === 0) await setImmediate();
  }
  if (fails) await run.fails({ code: 'function_error', message: 'no', type: 'ValueError' });
  else await run.stops();
  await staying;
  const all = await Promise.all(reading);
  if (!promised) all.push(whole);
  return all.flatMap((seen, at) => judged(seen, sizes, fails).map((text) => `reader ${at}: ${text}`));
}

test('each reader sees every event once and in order, with any cuts and on any gateway', async () => {
  let count = 0;
  try {
    await fc.assert(
      fc.asyncProperty(rounds, async (round) => {
        expect(await played(round)).toEqual([]);
        count++;
      }),
      // Failures are not shrunk, because each attempt has other timings.
      { numRuns: ROUNDS, seed: SEED, endOnFailure: true },
    );
  } finally {
    process.stderr.write(`resume property: ${count} rounds, seed ${SEED} (RESUME_ROUNDS, RESUME_SEED)\n`);
  }
});

describe('the judge finds', () => {
  const sizes = [1, 2, 3, 4];
  const right: readonly Seen[] = sizes.map((size, at) => ({
    id: String(at + 1),
    event: undefined,
    data: itemText(at + 1, size),
  }));
  const error: Seen = { id: '5', event: 'error', data: '{}' };
  const [one, two, three, four] = right as [Seen, Seen, Seen, Seen];

  test('no fault in correct events', () => {
    expect(judged(right, sizes, false)).toEqual([]);
    expect(judged([...right, error], sizes, true)).toEqual([]);
  });

  test.each<[string, readonly Seen[], boolean]>([
    ['a loss at the start', [two, three, four], false],
    ['a loss in between', [one, two, four], false],
    ['a loss at the end', [one, two, three], false],
    ['a double', [one, two, two, three, four], false],
    ['a double at the end', [...right, four], false],
    ['a swap', [one, three, two, four], false],
    ['other text', [one, { ...two, data: three.data }, three, four], false],
    ['text that is cut', [one, { ...two, data: two.data.slice(0, -1) }, three, four], false],
    ['an item without its number', [one, { ...two, id: undefined }, three, four], false],
    ['a missing failure', right, true],
    ['a repeated failure', [...right, error, error], true],
    ['a failure of a run that succeeded', [...right, error], false],
    ['a failure before its time', [one, two, three, error], true],
    ['nothing at all', [], false],
  ])('%s', (_, seen, fails) => {
    expect(judged(seen, sizes, fails)).not.toEqual([]);
  });
});

describe('a bug that is planted in a gateway is found:', () => {
  type Read = GatewayUnderTest['store']['read'];
  test.each<[string, (read: Read) => Read]>([
    [
      'resuming one item too late',
      (original) => (project, runId, live, cursor) => original(project, runId, live, cursor + 1),
    ],
    [
      'resuming one item too early',
      (original) => (project, runId, live, cursor) => original(project, runId, live, Math.max(0, cursor - 1)),
    ],
    ['resuming from the start', (original) => (project, runId, live) => original(project, runId, live, 0)],
  ])('%s', async (_, plant) => {
    const { store } = gateways[1];
    const original = store.read.bind(store);
    store.read = plant(original);
    try {
      const random = fc.sample(rounds, { numRuns: BUG_ROUNDS, seed: BUG_SEED });
      const seen: string[] = [];
      for (let n = 0; n < BUG_ROUNDS && seen.length === 0; n++) {
        seen.push(...(await played(random[n] as Round).catch((thrown: Error) => [thrown.message])));
      }
      expect(seen).not.toEqual([]);
    } finally {
      store.read = original;
    }
  });
});
