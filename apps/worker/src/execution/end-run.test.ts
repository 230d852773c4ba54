// Contract 5: the end of an attempt, with a store that answers late or differently.
import { type Outcome, ServiceError } from '@inference-proxy/contracts';
import type { End, EndAnswer } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import { endRun } from './end-run.ts';

const attempt = { project: 'demo', runId: 'run', token: 'w:1' };
const outcome: Omit<Outcome, 'endedAt'> = { state: 'succeeded', items: 3, streamed: true, runTimeMs: '1' };

/** Returns a store that gives these answers in order. */
function storeOf(...answers: (EndAnswer | Error)[]) {
  const ends: End[] = [];
  const record = async (_project: string, end: End): Promise<EndAnswer> => {
    ends.push(end);
    const answer = answers.shift() ?? new ServiceError('unavailable', 'away');
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { ends, store: { end: record } };
}

const never = new AbortController().signal;

test('an end without an answer is repeated until the store answers', async () => {
  const { ends, store } = storeOf(new ServiceError('unavailable', 'away'), { state: 'ended' });
  expect(await endRun(store, attempt, { outcome, retry: false }, never)).toBe('ended');
  expect(ends.map((end) => end.outcome)).toEqual([outcome, outcome]);
});

test('a run whose items the store has lost ends as internal, never as a stream with a hole', async () => {
  const { ends, store } = storeOf({ state: 'behind', last: 1 }, { state: 'ended' });
  expect(await endRun(store, attempt, { outcome, retry: false }, never)).toBe('ended');
  expect(ends[1]?.outcome).toMatchObject({ state: 'failed', items: 1, error: { code: 'internal' } });
});

test.each(['requeued', 'lost'] as const)('the answer %s is returned', async (state) => {
  expect(await endRun(storeOf({ state }).store, attempt, { outcome, retry: true }, never)).toBe(state);
});

test('a worker that must stop does not wait for the store', async () => {
  const stopping = new AbortController();
  const ended = endRun(storeOf().store, attempt, { outcome, retry: false }, stopping.signal);
  stopping.abort();
  expect(await ended).toBe('given_up');
});

test('an error of the worker’s own code is repeated a few times, because another run of the same call may have caused it', async () => {
  const { ends, store } = storeOf(new TypeError('wrong'), { state: 'ended' });
  expect(await endRun(store, attempt, { outcome, retry: false }, never)).toBe('ended');
  expect(ends).toHaveLength(2);
  const faults = Array.from({ length: 20 }, () => new TypeError('wrong'));
  await expect(endRun(storeOf(...faults).store, attempt, { outcome, retry: false }, never)).rejects.toThrow('wrong');
});
