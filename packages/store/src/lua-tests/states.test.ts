// Contract 5: the states of a run. Every operation in every state takes only the steps of the table.
import { type RunState, runTransitions } from '@inference-proxy/contracts';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type AcceptOptions, LEASE, SteppedStore } from './stepped-store.ts';

let server: SteppedStore;
beforeAll(async () => {
  server = await SteppedStore.open();
});
afterAll(() => server.close());

type State = RunState | 'none';
const QUEUE_MS = 8_000;
const ERROR = '{"code":"function_error","message":"m"}';

const end = (store: SteppedStore, state: string, retry = 0) =>
  store.endAs('a', 'w:1', { state, retry, ...(state !== 'succeeded' && { error: ERROR }) });

type Bring = (store: SteppedStore, options: AcceptOptions) => Promise<unknown>;

const ended =
  (state: string): Bring =>
  async (store, options) => {
    await store.running('a', options);
    await end(store, state);
  };

/** Brings run `a` into a state. The call has these options. */
const into: Record<State, Bring> = {
  none: async () => undefined,
  queued: (store, options) => store.accept('a', options),
  running: (store, options) => store.running('a', options),
  succeeded: ended('succeeded'),
  failed: ended('failed'),
  cancelled: ended('cancelled'),
  timed_out: ended('timed_out'),
  expired: async (store, options) => {
    await store.accept('a', { ...options, timeout: QUEUE_MS });
    await store.renew('w');
    await store.pass(QUEUE_MS + 1_000);
  },
};

interface Deed {
  readonly script: string;
  readonly name: string;
  readonly options?: AcceptOptions;
  readonly act: (store: SteppedStore) => Promise<unknown>;
}

const deeds: readonly Deed[] = [
  { script: 'accept', name: 'it is accepted', act: (store) => store.accept('a') },
  { script: 'take', name: 'it is taken', act: (store) => store.take('w', 7, 5) },
  ...['succeeded', 'failed', 'cancelled', 'timed_out'].map((state): Deed => {
    return { script: 'end', name: `its attempt ends as ${state}`, act: (store) => end(store, state) };
  }),
  { script: 'end', name: 'its attempt crashes and is to be tried again', act: (store) => end(store, 'failed', 1) },
  { script: 'cancel', name: 'it is cancelled', act: (store) => store.cancel('a') },
  {
    script: 'unfollow',
    name: 'its last reader leaves',
    options: { absent: 0, live: 'i' },
    act: (store) => store.unfollow('a'),
  },
  {
    script: 'reap',
    name: 'its time without a reader is up',
    options: { absent: 1_000, live: 'i' },
    act: async (store) => {
      await store.renew('w');
      await store.unfollow('a');
      await store.pass(1_100);
    },
  },
  { script: 'reap', name: 'its worker vanishes', act: (store) => store.pass(LEASE + 100) },
  {
    script: 'reap',
    name: 'it waits too long',
    act: async (store) => {
      await store.renew('w');
      await store.pass(QUEUE_MS + 100);
    },
  },
  {
    script: 'reap',
    name: 'nobody serves its app',
    options: { timeout: 600_000 },
    act: async (store) => store.pass(31_000),
  },
];

const seen = new Set<string>();
const step = (from: string, to: string, script: string): string => `${from} → ${to} by ${script}`;
const table = new Set(runTransitions.map(({ from, to, script }) => step(from, to, script)));

test.each(Object.keys(into) as State[])('from %s a run takes only the steps of the table', async (from) => {
  for (const { script, name, options, act } of deeds) {
    const store = server.fresh();
    await store.reap();
    await into[from](store, { timeout: QUEUE_MS, ...options });
    const before = (await store.record('a')).state ?? 'none';
    expect(before).toBe(from);
    await act(store);
    const after = (await store.record('a')).state ?? 'none';
    if (after === before) continue;
    const taken = step(before, after, script);
    seen.add(taken);
    expect({ name, taken, known: table.has(taken) }).toEqual({ name, taken, known: true });
  }
});

test('every step of the table happens', () => {
  expect([...seen].sort()).toEqual([...table].sort());
});
