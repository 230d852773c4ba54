// A reader during a short absence of the store: the reader of a known run waits, and the reader of an unknown run fails.
import { ServiceError } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import type { LogPage } from './follow.ts';
import { RunReader } from './reader.ts';

const ended: LogPage = {
  token: 't',
  last: 0,
  batches: [],
  outcome: { state: 'succeeded', items: 0, streamed: false, runTimeMs: '1' } as NonNullable<LogPage['outcome']>,
  registered: true,
  lastLine: 0,
  lines: [],
};

/** Returns a reader whose store is away for the first `failures` pages. */
function readerOf(known: boolean, failures: number): RunReader {
  let left = failures;
  return new RunReader('demo', 'r', 'o', 0, known, {
    async page() {
      if (left-- > 0) throw new ServiceError('unavailable', 'The run store did not answer in time.');
      return ended;
    },
    moved() {},
    left() {},
  });
}

test('the reader of a known run waits until the store is back', async () => {
  const reader = readerOf(true, 2);
  const outcome = reader.outcome();
  reader.check();
  expect((await outcome).state).toBe('succeeded');
});

test('a reader that starts while the store is away gets unavailable', async () => {
  await expect(readerOf(false, 1).outcome()).rejects.toMatchObject({ code: 'unavailable' });
});
