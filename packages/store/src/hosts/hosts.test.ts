// Contract 4, "Isolation": caps, parking, circuits and probes over all dispatchers, as tables, with a clock that the test moves.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type Reply, SteppedStore } from '../lua-tests/stepped-store.ts';

const LEASE = 30_000;
const PROBE = 5_000;
const HOST = 'slow.test:443';

let server: SteppedStore;
let receivers: Receivers;
beforeAll(async () => {
  server = await SteppedStore.open();
});
afterAll(() => server.close());
beforeEach(async () => {
  receivers = new Receivers(server.fresh());
  for (const project of 'abcd') await receivers.hasSucceeded(project, HOST);
});

interface Woken {
  readonly project: string;
  readonly run: string;
  readonly slot: string;
}

/** Runs the two scripts. A run's name begins with its project: `a1` is a run of project `a`. */
class Receivers {
  #number = 0;
  perProject = 3;
  perHost = 5;
  /** Number of attempts that a dispatcher may open at a line that has succeeded. */
  grown = 0;

  constructor(readonly store: SteppedStore) {}

  project = 100;

  #head = () => [LEASE, this.perProject, this.perHost, PROBE, this.project];

  async #steps(...steps: (string | number)[][]): Promise<{ answers: string[]; woken: Woken[] }> {
    const [answers, woken] = (await this.store.run('hosts', ...this.#head(), ...steps.flat())) as [string[], Reply[][]];
    return { answers, woken: woken.map(wokenOf) };
  }

  /** Marks a receiver as successful. Other receivers may have one open attempt. */
  async hasSucceeded(project: string, host: string): Promise<void> {
    await this.store.client.set(`${this.store.prefix}succeeded:${project} ${host}`, '1');
  }

  /** @returns the slot, or the reason why the delivery was parked */
  async enter(run: string, how = 'n', slot = `s${++this.#number}`, host = HOST): Promise<string> {
    const { answers } = await this.#steps([
      'enter',
      run.charAt(0),
      host,
      run,
      1,
      `1 ${run.charAt(0)} ${run} ${slot}`,
      this.grown,
      '',
      how,
    ]);
    return answers[0] === 'open' || answers[0] === 'watched'
      ? `1 ${run.charAt(0)} ${run} ${slot}`
      : (answers[0] as string);
  }

  async leave(slot: string, outcome: 'good' | 'bad' | 'none', host = HOST): Promise<Woken[]> {
    const [, project = '', run = ''] = slot.split(' ');
    return (await this.#steps(['leave', project, host, run, 1, slot, this.grown, '', outcome])).woken;
  }

  async drop(slot: string, host = HOST): Promise<Woken[]> {
    const [, project = '', run = ''] = slot.split(' ');
    return (await this.#steps(['drop', project, host, run, 1, slot, 0, '', 'none'])).woken;
  }

  async look(): Promise<{ woken: Woken[]; lapsed: string[] }> {
    const [woken, lapsed] = (await this.store.run('host-look', ...this.#head(), 50)) as [Reply[][], string[][]];
    return { woken: woken.map(wokenOf), lapsed: lapsed.map(([, run]) => run as string) };
  }

  /** Makes one attempt: it enters and leaves. */
  async attempt(outcome: 'good' | 'bad' | 'none', run = 'a0'): Promise<string> {
    const slot = await this.enter(run);
    if (slot.startsWith('parked')) return slot;
    await this.leave(slot, outcome);
    return outcome;
  }

  async attempts(count: number, outcome: 'good' | 'bad'): Promise<void> {
    for (let at = 0; at < count; at += 1) await this.attempt(outcome);
  }

  parked = async (): Promise<number> => Number((await this.store.client.get(`${this.store.prefix}parked-count`)) ?? 0);
  keys = async (): Promise<string[]> =>
    (await this.store.client.keys(`${this.store.prefix.replace(/[{}]/g, '?')}*`))
      .map((key) => key.slice(this.store.prefix.length))
      .filter((key) => key !== 'offset' && !key.startsWith('succeeded:'))
      .sort();
}

const wokenOf = ([project, run, , , slot]: Reply[]): Woken => ({
  project: String(project),
  run: String(run),
  slot: String(slot),
});

test('a project may use its share of a receiver; further deliveries are parked and woken by a freed slot', async () => {
  const slots = [await receivers.enter('a1'), await receivers.enter('a2'), await receivers.enter('a3')];
  expect(await receivers.enter('a4')).toBe('parked host_busy');
  expect(await receivers.enter('b1')).toMatch(/b1/);
  expect(await receivers.parked()).toBe(1);
  expect(await receivers.leave(slots[0] as string, 'good')).toMatchObject([{ project: 'a', run: 'a4' }]);
  expect(await receivers.parked()).toBe(0);
});

test('a receiver’s cap covers all projects, and freed slots go to the projects in turn', async () => {
  const slots: string[] = [];
  for (const run of ['a1', 'a2', 'a3', 'b1', 'b2']) slots.push(await receivers.enter(run));
  for (const run of ['c1', 'd1', 'c2', 'd2']) expect(await receivers.enter(run)).toBe('parked host_busy');
  const woken: Woken[] = [];
  for (const slot of slots) woken.push(...(await receivers.leave(slot, 'good')));
  expect(woken.map(({ project }) => project)).toEqual(['c', 'd', 'c', 'd']);
});

test('the longest parked and the newest delivery are woken in turn, so a backlog does not delay new deliveries', async () => {
  receivers.perProject = 1;
  let slot = await receivers.enter('a0');
  for (let at = 1; at <= 6; at += 1) await receivers.enter(`a${at}`);
  const order: string[] = [];
  for (let at = 0; at < 6; at += 1) {
    const [next] = await receivers.leave(slot, 'good');
    order.push(next?.run as string);
    slot = next?.slot as string;
  }
  expect(order).toEqual(['a1', 'a6', 'a2', 'a5', 'a3', 'a4']);
  await receivers.leave(slot, 'good');
  expect(await receivers.keys()).toEqual(['parked-count', 'slot-number', 'watch']);
});

test('a repeated step has no further effect: a slot counts once and is given back once', async () => {
  receivers.perProject = 1;
  const slot = await receivers.enter('a1', 'n', 'same');
  expect(await receivers.enter('a1', 'n', 'same')).toBe(slot);
  await receivers.enter('a2');
  await receivers.enter('a2');
  expect(await receivers.parked()).toBe(1);
  expect(await receivers.leave(slot, 'bad')).toHaveLength(1);
  expect(await receivers.leave(slot, 'bad')).toHaveLength(0);
});

test('a parked delivery that enters in another way is no longer parked', async () => {
  receivers.perProject = 1;
  const slot = await receivers.enter('a1');
  await receivers.enter('a2');
  expect(await receivers.enter('a2', 'p')).toBe('parked host_busy');
  expect(await receivers.enter('a2', 'f')).toMatch(/a2/);
  await receivers.leave(slot, 'good');
  expect(await receivers.enter('a2', 'p')).toBe('parked host_busy');
  expect(await receivers.parked()).toBe(1);
});

test('slots of a dead dispatcher expire: parked deliveries enter, and the dead dispatcher’s deliveries are handed over again', async () => {
  for (const run of ['a1', 'a2', 'a3', 'a4']) await receivers.enter(run);
  await receivers.store.advance(LEASE + 5000);
  const { woken, lapsed } = await receivers.look();
  expect(lapsed.sort()).toEqual(['a1', 'a2', 'a3']);
  expect(woken).toMatchObject([{ run: 'a4' }]);
  expect(await receivers.look()).toEqual({ woken: [], lapsed: [] });
});

test('a project that has succeeded may exceed its share, and never uses the share of another project', async () => {
  receivers.perHost = 10;
  receivers.grown = 100;
  const slots: string[] = [];
  for (let at = 1; at <= 7; at += 1) slots.push(await receivers.enter(`a${at}`));
  expect(slots.every((slot) => slot.startsWith('1 a'))).toBe(true);
  expect(await receivers.enter('a8')).toBe('parked host_busy');
  for (const run of ['b1', 'b2', 'b3']) expect(await receivers.enter(run)).toMatch(run);
  expect(await receivers.enter('b4')).toBe('parked host_busy');
  // The receiver is full. A freed slot goes first to a project below its share, and to no project beyond its share.
  expect(await receivers.leave(slots[0] as string, 'good')).toEqual([]);
  expect(await receivers.enter('c1')).toMatch('c1');
});

test('a project that has succeeded is woken beyond its share, and after its first failure only up to its share', async () => {
  receivers.perHost = 20;
  receivers.grown = 5;
  const slots: string[] = [];
  for (let at = 1; at <= 5; at += 1) slots.push(await receivers.enter(`a${at}`));
  for (const run of ['a6', 'a7', 'a8']) expect(await receivers.enter(run)).toBe('parked host_busy');
  expect(await receivers.leave(slots[0] as string, 'good')).toMatchObject([{ run: 'a6' }]);
  expect(await receivers.leave(slots[1] as string, 'bad')).toEqual([]);
  expect(await receivers.leave(slots[2] as string, 'good')).toEqual([]);
  expect(await receivers.leave(slots[3] as string, 'good')).toMatchObject([{ run: expect.stringMatching(/a[78]/) }]);
});

/** Lets runs of a project enter, each at a separate host (`h1` for `a1`). */
async function enterEach(...runs: string[]): Promise<string[]> {
  const answers: string[] = [];
  for (const run of runs) answers.push(await receivers.enter(run, 'n', undefined, `h${run.slice(1)}`));
  return answers;
}

test('a receiver without a success may have one open attempt, and its share after the first success', async () => {
  const [slot = ''] = await enterEach('a1');
  for (const run of ['a2', 'a3', 'a4'])
    expect(await receivers.enter(run, 'n', undefined, 'h1')).toBe('parked host_busy');
  expect(await receivers.leave(slot, 'bad', 'h1')).toMatchObject([{ run: 'a2' }]);
  const [next] = await receivers.leave((await receivers.enter('a5', 'f', undefined, 'h1')) as string, 'none', 'h1');
  expect(next).toBeUndefined();
  const woken = await receivers.leave(`1 a a2 w1`, 'good', 'h1');
  expect(woken.map(({ run }) => run).sort()).toEqual(['a3', 'a4']);
});

test('a project’s share covers all receivers, and freed slots go to its receivers in turn', async () => {
  receivers.project = 3;
  for (let host = 1; host <= 6; host += 1)
    for (const project of 'ab') await receivers.hasSucceeded(project, `h${host}`);
  const slots = await enterEach('a1', 'a2', 'a3');
  expect(await enterEach('a4', 'a5', 'a6')).toEqual(Array.from({ length: 3 }, () => 'parked project_busy'));
  // Another project may still use the same receivers.
  expect(await enterEach('b1', 'b4')).toEqual([expect.stringMatching('b1'), expect.stringMatching('b4')]);
  const woken: Woken[] = [];
  for (const [at, slot] of slots.entries()) woken.push(...(await receivers.leave(slot, 'good', `h${at + 1}`)));
  expect(woken.map(({ run }) => run).sort()).toEqual(['a4', 'a5', 'a6']);
  expect(await receivers.parked()).toBe(0);
});

test('dropping an unused slot wakes no delivery, and the next look wakes the waiting delivery', async () => {
  receivers.project = 1;
  for (const host of ['h1', 'h2']) await receivers.hasSucceeded('a', host);
  const [slot = ''] = await enterEach('a1', 'a2');
  expect(await receivers.drop(slot, 'h1')).toEqual([]);
  expect(await receivers.look()).toMatchObject({ woken: [{ run: 'a2' }], lapsed: [] });
});

test("a project's slots of a dead dispatcher expire, and its other receivers are woken", async () => {
  receivers.project = 1;
  for (const host of ['h1', 'h2']) await receivers.hasSucceeded('a', host);
  await enterEach('a1', 'a2');
  await receivers.store.advance(LEASE + 5000);
  const { woken, lapsed } = await receivers.look();
  expect(lapsed).toEqual(['a1']);
  expect(woken).toMatchObject([{ run: 'a2' }]);
});

type Outcome = 'good' | 'bad' | 'none';
/** Outcomes in order, and the answer to the next attempt. */
const table: [string, [Outcome, number][], string][] = [
  ['19 failures in a row', [['bad', 19]], 'open'],
  ['20 failures in a row', [['bad', 20]], 'parked circuit_open'],
  [
    '38 failures with a success in the middle',
    [
      ['bad', 19],
      ['good', 1],
      ['bad', 19],
    ],
    'open',
  ],
  [
    '20 failures with attempts without a meaning between them',
    [
      ['bad', 19],
      ['none', 5],
      ['bad', 1],
    ],
    'parked circuit_open',
  ],
  [
    'failures in half of the last hundred',
    [
      ...repeat(10, [
        ['bad', 5],
        ['good', 5],
      ]),
    ],
    'open',
  ],
  [
    'failures in half of the last hundred, with a failure at the end',
    [
      ['good', 1],
      ['bad', 1],
      ...repeat(49, [
        ['good', 1],
        ['bad', 1],
      ]),
      ['good', 1],
      ['bad', 1],
    ],
    'parked circuit_open',
  ],
  [
    'failures in less than half of the last hundred',
    [
      ...repeat(34, [
        ['bad', 1],
        ['good', 2],
      ]),
    ],
    'open',
  ],
  [
    'fewer than a hundred attempts with many failures',
    [
      ['bad', 19],
      ['good', 1],
      ['bad', 19],
      ['good', 1],
    ],
    'open',
  ],
];

function repeat(times: number, what: [Outcome, number][]): [Outcome, number][] {
  return Array.from({ length: times }, () => what).flat();
}

test.each(table)('the circuit after %s', async (_name, outcomes, expected) => {
  for (const [outcome, count] of outcomes) {
    for (let at = 0; at < count; at += 1) await receivers.attempt(outcome);
  }
  const met = await receivers.enter('a9');
  expect(met.startsWith('parked') ? met : 'open').toBe(expected);
});

test('an open circuit of one project does not affect another project', async () => {
  await receivers.attempts(20, 'bad');
  expect(await receivers.enter('a1')).toBe('parked circuit_open');
  expect(await receivers.enter('b1')).toMatch(/b1/);
});

test('an open circuit has one probe at a time, after pauses that double up to sixty times the first pause', async () => {
  await receivers.attempts(20, 'bad');
  for (const run of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9']) await receivers.enter(run);
  expect((await receivers.look()).woken).toEqual([]);
  for (let pause = PROBE, probes = 0; probes < 8; pause = Math.min(pause * 2, PROBE * 60), probes += 1) {
    await receivers.store.advance(pause - 500);
    expect((await receivers.look()).woken).toEqual([]);
    await receivers.store.advance(500);
    const { woken } = await receivers.look();
    expect(woken).toHaveLength(1);
    expect((await receivers.look()).woken).toEqual([]);
    expect(await receivers.enter('az')).toBe('parked circuit_open');
    expect(await receivers.leave((woken[0] as Woken).slot, 'bad')).toEqual([]);
  }
});

test('a probe without a meaning is followed by another probe after the same pause', async () => {
  await receivers.attempts(20, 'bad');
  await receivers.enter('a1');
  await receivers.enter('a2');
  await receivers.store.advance(PROBE);
  const [probe] = (await receivers.look()).woken;
  await receivers.leave((probe as Woken).slot, 'none');
  await receivers.store.advance(PROBE);
  expect((await receivers.look()).woken).toHaveLength(1);
});

test('a probe of a dead dispatcher is followed by another probe', async () => {
  await receivers.attempts(20, 'bad');
  await receivers.enter('a1');
  await receivers.enter('a2');
  await receivers.store.advance(PROBE);
  expect((await receivers.look()).woken).toHaveLength(1);
  await receivers.store.advance(LEASE + 1000);
  const { woken, lapsed } = await receivers.look();
  expect([woken.length, lapsed.length]).toEqual([1, 1]);
});

test('without parked deliveries, the first delivery after the pause is the probe', async () => {
  await receivers.attempts(20, 'bad');
  expect(await receivers.enter('a1')).toBe('parked circuit_open');
  await receivers.store.advance(PROBE);
  const probe = await receivers.enter('a2');
  expect(probe).toMatch(/a2/);
  expect(await receivers.enter('a3')).toBe('parked circuit_open');
  expect((await receivers.look()).woken).toEqual([]);
});

test('the first success closes the circuit, and parked deliveries are sent without a flood', async () => {
  receivers.perProject = 16;
  receivers.perHost = 64;
  await receivers.attempts(20, 'bad');
  for (let at = 0; at < 200; at += 1) await receivers.enter(`a-${at}`);
  await receivers.store.advance(PROBE);
  const [probe] = (await receivers.look()).woken;
  let open = await receivers.leave((probe as Woken).slot, 'good');
  const widths: number[] = [open.length];
  let delivered = 1;
  while (open.length > 0) {
    const next: Woken[] = [];
    for (const { slot } of open) {
      next.push(...(await receivers.leave(slot, 'good')));
      delivered += 1;
    }
    open = next;
    widths.push(open.length);
  }
  expect(delivered).toBe(200);
  // Two at first, never more than twice the previous number, never more than the share.
  expect(widths[0]).toBe(2);
  expect(Math.max(...widths)).toBe(16);
  widths.slice(1).forEach((width, at) => {
    expect(width).toBeLessThanOrEqual(2 * (widths[at] as number));
  });
  expect(await receivers.parked()).toBe(0);
});

test('a receiver that fails again while its parked deliveries are sent gets fewer attempts at a time', async () => {
  receivers.perProject = 8;
  await receivers.attempts(20, 'bad');
  for (let at = 0; at < 50; at += 1) await receivers.enter(`a-${at}`);
  await receivers.store.advance(PROBE);
  const [probe] = (await receivers.look()).woken;
  const open = await receivers.leave((probe as Woken).slot, 'good');
  expect(open).toHaveLength(2);
  expect(await receivers.leave((open[0] as Woken).slot, 'bad')).toEqual([]);
  expect(await receivers.leave((open[1] as Woken).slot, 'bad')).toHaveLength(1);
});
