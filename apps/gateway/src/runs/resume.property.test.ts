// Contract 5 (`GET /runs/{run_id}/stream`) under random cuts, gateways and speeds: each reader sees 1 to n, each once and in order, and how it ended.
import type { IncomingMessage } from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';
import type { PlayedRun } from '../../test/played-worker.ts';

/** Rounds, and the seed to repeat a schedule (what meets what in time stays the machine's choice). */
const ROUNDS = Number(process.env.RESUME_ROUNDS ?? 40);
const SEED = Number(process.env.RESUME_SEED ?? Date.now() % 2 ** 31);
/** A planted bug must show within so many rounds, which are always the same. */
const BUG_ROUNDS = 12;
const BUG_SEED = 20_261_121;

interface Connection {
  readonly gateway: 0 | 1;
  /** Bytes after which it is cut. */
  readonly bytes: number;
  /** By a reset instead of an orderly end. */
  readonly reset: boolean;
}

interface Reader {
  /** Begins when that many batches are written. */
  readonly from: number;
  /** Those that are cut; the one after them is not. */
  readonly cut: readonly Connection[];
  readonly lastGateway: 0 | 1;
  /** Ms between two reads. */
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

/** Item `n` of a run: whoever has it knows which it is and that it is whole. */
const itemText = (n: number, size: number): string => `${n}:${'x'.repeat(size)}:${n}`;

/** What is wrong with what one reader saw. */
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

/** Reads one answer until it ends or is cut; an event that is not whole by then is none. */
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

/** Comes back after each cut with the last id it has, as an EventSource does, until it is told that there is nothing more. */
async function read(run: PlayedRun, reader: Reader): Promise<Seen[]> {
  const seen: Seen[] = [];
  const path = `/v4/${PROJECT}/runs/${run.taken.runId}/stream`;
  // After the cuts: one to the end, and one that is told so.
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
  throw new Error(`not told the end after ${seen.length} events`);
}

/** Plays a round and gives what its readers saw wrongly. */
async function played({ promised, fails, batches, readers }: Round): Promise<string[]> {
  const [first] = gateways;
  const sizes = batches.flat();
  const calling = promised
    ? first.call({ query: '?async=true', body: '{}' })
    : first.open(`/v4/${PROJECT}/chat/run?ids=true`, { body: '{}', headers: { accept: 'text/event-stream' } });
  const run = await first.worker.next();
  const whole: Seen[] = [];
  // The caller of a plain run stays: with the last reader it would be cancelled.
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

test('each reader sees every event once and in order, whatever is cut, on whichever gateway', async () => {
  let count = 0;
  try {
    await fc.assert(
      fc.asyncProperty(rounds, async (round) => {
        expect(await played(round)).toEqual([]);
        count++;
      }),
      // Not shrunk: it meets other timings each time.
      { numRuns: ROUNDS, seed: SEED, endOnFailure: true },
    );
  } finally {
    process.stderr.write(`resume property: ${count} rounds, seed ${SEED} (RESUME_ROUNDS, RESUME_SEED)\n`);
  }
});

describe('the judge sees', () => {
  const sizes = [1, 2, 3, 4];
  const right: readonly Seen[] = sizes.map((size, at) => ({
    id: String(at + 1),
    event: undefined,
    data: itemText(at + 1, size),
  }));
  const error: Seen = { id: '5', event: 'error', data: '{}' };
  const [one, two, three, four] = right as [Seen, Seen, Seen, Seen];

  test('nothing wrong where nothing is', () => {
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
    ['a failure that is not told', right, true],
    ['a failure told twice', [...right, error, error], true],
    ['a failure where there is none', [...right, error], false],
    ['a failure before its time', [one, two, three, error], true],
    ['nothing at all', [], false],
  ])('%s', (_, seen, fails) => {
    expect(judged(seen, sizes, fails)).not.toEqual([]);
  });
});

describe('planted in a gateway, it is seen:', () => {
  type Read = GatewayUnderTest['store']['read'];
  test.each<[string, (read: Read) => Read]>([
    [
      'resuming one too late',
      (original) => (project, runId, live, cursor) => original(project, runId, live, cursor + 1),
    ],
    [
      'resuming one too early',
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
