// Generates the steps of a round as data. fast-check prints them if a round fails.
import fc from 'fast-check';
import { scripts } from './faults.ts';

/** The behaviour of a run's function. It travels as the run's parameters. */
export interface Plan {
  /** Sizes of the batches of items. */
  readonly items: readonly number[];
  /** The last step of the function: `stay` waits for a cancel, `crash` wants its first attempt back in the queue. */
  readonly how: 'return' | 'raise' | 'stay' | 'crash';
  /** The function does not wait for the answer of an append before its next append or its end. */
  readonly hurry: boolean;
  /** The first item is too large to publish. */
  readonly large: boolean;
  /** The run is an answer of a custom runtime: a head comes first. */
  readonly head: boolean;
}

export interface Behaviour {
  /** Disconnects after this many items. */
  readonly leaveAfter?: number;
  /** Pauses for a moment after this many items. */
  readonly pauseAfter?: number;
}

export type Step =
  | {
      readonly type: 'call';
      readonly gateway: number;
      readonly kind: 'items' | 'outcome' | 'promised' | 'webhook';
      /** A name, and optionally the fingerprint of a different request with this key. */
      readonly key?: string;
      /** Time for which the run continues without a reader, ms; default 0. */
      readonly absentMs?: number;
      readonly plan: Plan;
      readonly behaviour: Behaviour;
    }
  | {
      readonly type: 'read';
      readonly run: number;
      readonly gateway: number;
      readonly mode: 'items' | 'outcome';
      readonly from: number;
      readonly behaviour: Behaviour;
    }
  | { readonly type: 'cancel'; readonly run: number; readonly gateway: number }
  | { readonly type: 'cancel first'; readonly gateway: number }
  | { readonly type: 'look'; readonly run: number; readonly gateway: number }
  | {
      readonly type: 'fault';
      readonly script: (typeof scripts)[number];
      readonly fault: 'lost' | 'resent' | 'repeated' | 'delayed';
      readonly ms: number;
    }
  | { readonly type: 'swallow'; readonly only: 'all' | 'ends'; readonly count: number }
  | { readonly type: 'freeze' | 'thaw' | 'kill worker' | 'kill gateway'; readonly which: number }
  | { readonly type: 'cut connections' | 'forget scripts' | 'restart' | 'evict' }
  | { readonly type: 'tighten' | 'loosen' }
  | { readonly type: 'pause' | 'wait'; readonly ms: number };

const which = fc.nat({ max: 2 });
const gateway = fc.nat({ max: 1 });
const run = fc.nat({ max: 9 });

const plan: fc.Arbitrary<Plan> = fc.record({
  items: fc.oneof(
    { weight: 7, arbitrary: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 5 }) },
    // Long enough for a window to slide.
    { weight: 1, arbitrary: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 30, maxLength: 40, size: 'max' }) },
  ),
  how: fc.constantFrom('return', 'return', 'return', 'raise', 'stay', 'crash'),
  hurry: fc.boolean(),
  large: fc.nat({ max: 19 }).map((n) => n === 0),
  head: fc.nat({ max: 3 }).map((n) => n === 0),
});

const behaviour: fc.Arbitrary<Behaviour> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.record({ leaveAfter: fc.nat({ max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ pauseAfter: fc.nat({ max: 4 }) }) },
);

const call = fc
  .record({
    type: fc.constant('call' as const),
    gateway,
    kind: fc.constantFrom('items', 'items', 'outcome', 'promised', 'webhook'),
    key: fc.constantFrom(undefined, undefined, undefined, undefined, 'k1', 'k1', 'k1 other'),
    absentMs: fc.constantFrom(undefined, undefined, 30),
    plan,
    behaviour,
  })
  .map(
    ({ key, absentMs, ...rest }): Step => ({
      ...rest,
      ...(key !== undefined && { key }),
      ...(absentMs !== undefined && { absentMs }),
    }),
  );

const fault = fc.record({
  type: fc.constant('fault' as const),
  script: fc.constantFrom(...scripts),
  fault: fc.constantFrom('lost', 'resent', 'repeated', 'delayed'),
  ms: fc.integer({ min: 1, max: 40 }),
});

const ofOneService: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: call },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('read' as const),
      run,
      gateway,
      mode: fc.constantFrom('items', 'items', 'outcome'),
      from: fc.nat({ max: 3 }),
      behaviour,
    }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('cancel' as const), run, gateway }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('cancel first' as const), gateway }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('look' as const), run, gateway }) },
  { weight: 8, arbitrary: fault },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('swallow' as const),
      only: fc.constantFrom('all', 'ends'),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('freeze', 'freeze', 'thaw', 'kill worker'), which }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('kill gateway' as const), which: gateway }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('cut connections', 'forget scripts') }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('evict' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('tighten', 'loosen') }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 40 }) }) },
);

const ofRedis: fc.Arbitrary<Step> = fc.oneof(
  { weight: 30, arbitrary: ofOneService },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('pause' as const), ms: fc.constantFrom(100, 700) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restart' as const) }) },
);

/** Generates the steps of one round. With `whole`, Redis itself pauses and restarts too. */
export const schedule = (how: 'services' | 'whole'): fc.Arbitrary<Step[]> =>
  fc.array(how === 'whole' ? ofRedis : ofOneService, { minLength: 12, maxLength: 36, size: 'max' });
