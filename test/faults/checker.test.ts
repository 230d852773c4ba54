// The checker itself: it accepts a correct history, and finds each loss and each double that a test plants.
import { expect, test } from '@jest/globals';
import { faultsOf, ITEMS } from './checker.ts';
import type { Delivered, History, Seen } from './history.ts';

const all = Array.from({ length: ITEMS }, (_, at) => at + 1);
const seen = (more: Partial<Seen>): Seen => ({ kind: 'call', tag: 't', beganAt: 0, endedAt: 1, is: 'ok', ...more });
const delivery = (more: Partial<Delivered> = {}): Delivered => ({
  runId: 'p',
  webhookId: 'w',
  body: '{"status":"succeeded"}',
  verified: true,
  ...more,
});
const history = (more: Partial<History> = {}): History => ({
  seen: [
    seen({}),
    seen({ kind: 'stream', items: all }),
    seen({ kind: 'promised', runId: 'p' }),
    seen({ kind: 'retried', tag: 'k', answeredBy: ['r', 'r'] }),
  ],
  delivered: [delivery(), delivery()],
  reported: [
    [
      { runId: 'p', status: 'succeeded', result: 1 },
      { runId: 'p', status: 'succeeded', result: 1 },
    ],
  ],
  entered: new Map([['k', 1]]),
  troubles: [{ from: 10, to: 20 }],
  left: [],
  ...more,
});

test('a correct history has no faults', () => {
  expect(faultsOf(history())).toEqual([]);
});

test.each<[string, Partial<History>]>([
  ['a run that nobody knows any more', { reported: [[{ runId: 'p', status: 'unknown' }]], seen: [] }],
  ['a lost item', { seen: [seen({ kind: 'resumed', items: [1, 2, 4] })] }],
  ['a doubled item', { seen: [seen({ kind: 'resumed', items: [1, 2, 2, 3] })] }],
  ['items of two executions', { seen: [seen({ kind: 'resumed', items: all, executions: ['a', 'b'] })] }],
  ['items out of order', { seen: [seen({ kind: 'resumed', items: [2, 1] })] }],
  ['a stream that ends early and says nothing', { seen: [seen({ kind: 'stream', items: [1, 2] })] }],
  ['a failure when nothing was wrong', { seen: [seen({ is: 'unavailable', beganAt: 0, endedAt: 9 })] }],
  ['a failure that nothing excuses', { seen: [seen({ is: 'internal', beganAt: 11, endedAt: 12 })] }],
  ['a lost delivery', { delivered: [] }],
  ['two bodies', { delivered: [delivery(), delivery({ body: '{"status":"succeeded","x":1}' })] }],
  ['two webhook ids', { delivered: [delivery(), delivery({ webhookId: 'other' })] }],
  ['a delivery that reports another end', { delivered: [delivery({ body: '{"status":"failed"}' })] }],
  ['a wrong signature', { delivered: [delivery(), delivery({ runId: 'other', verified: false })] }],
  ['a run without an end', { reported: [[{ runId: 'x', status: 'running' }]], seen: [] }],
  [
    'two outcomes of one run',
    {
      reported: [
        [
          { runId: 'p', status: 'succeeded' },
          { runId: 'p', status: 'failed' },
        ],
      ],
    },
  ],
  ['two runs under one key', { seen: [seen({ kind: 'retried', tag: 'k', answeredBy: ['r', 's'] })] }],
  ['a function entered twice under one key', { entered: new Map([['k', 2]]) }],
  ['something left in the store', { left: ['leases: 1'] }],
])('%s is seen', (_, planted) => {
  expect(faultsOf(history(planted))).toHaveLength(1);
});

test('a failure during an episode is excused', () => {
  const failed = seen({ is: 'worker_lost', beganAt: 5, endedAt: 11 });
  expect(faultsOf(history({ seen: [failed], delivered: [] }))).toEqual([]);
});

test('a run of the lost tail may be gone or have run again, and its items are still whole', () => {
  const forgotten: Partial<History> = {
    seen: [
      seen({ kind: 'promised', runId: 'p' }),
      seen({ kind: 'retried', tag: 'k', answeredBy: ['r', 's'] }),
      seen({ kind: 'resumed', is: 'not_found', items: [1, 2] }),
    ],
    delivered: [],
    reported: [[{ runId: 'p', status: 'unknown' }]],
    entered: new Map([['k', 2]]),
  };
  expect(faultsOf(history({ ...forgotten, troubles: [{ from: 1, to: 5, tailLost: true }] }))).toEqual([]);
  const elsewhere = history({ ...forgotten, troubles: [{ from: 2, to: 5, tailLost: true }] });
  expect(faultsOf(elsewhere).map(({ is }) => is)).toEqual(['wrong', 'lost', 'doubled', 'doubled', 'lost']);
  const mixed = seen({ kind: 'resumed', items: [1, 2, 2] });
  expect(faultsOf(history({ seen: [mixed], troubles: [{ from: 0, to: 5, tailLost: true }] }))).toMatchObject([
    { is: 'doubled' },
  ]);
});
