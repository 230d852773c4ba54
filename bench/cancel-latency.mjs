// Contract 5: ms from a cancel request to the run's end, measured by a reader of the run's log, for several kinds of functions.
import { once } from 'node:events';
import { open, pause, percentiles, report, request, stream } from './service.mjs';

const rounds = Number(process.env.ROUNDS ?? 50);

/** Resolves at the end of the answer's body. */
async function drained(answer) {
  answer.resume();
  await once(answer, 'end');
}

/** @param reads whether the benchmark reads the stream; an unread stream stops at its window */
async function latency(fn, reads) {
  const items = await stream(fn);
  const runId = items.headers['x-request-id'];
  await once(items, 'readable');
  if (reads) items.resume();
  else await pause(300);
  const follower = await open(`/runs/${runId}/logs?follow=true`, { own: true });
  const end = drained(follower);
  const askedAt = performance.now();
  const { status } = await request(`/runs/${runId}/cancel`, { method: 'POST' });
  await end;
  const ms = performance.now() - askedAt;
  const { status: state } = JSON.parse((await request(`/runs/${runId}`)).text);
  if (status !== 202 || state !== 'cancelled')
    throw new Error(`the cancel of ${fn} answered ${status} instead of 202, and the run is ${state}`);
  items.on('error', () => {}).destroy();
  return ms;
}

const few = Math.ceil(rounds / 25);
const KINDS = {
  bench: [
    ['sleeps', 'sleeps', true, rounds],
    ['loops', 'loops', true, rounds],
    ['awaits', 'awaits', true, rounds],
    ['yields to a reader', 'yields', true, rounds],
    ['waits for a reader', 'yields', false, Math.ceil(rounds / 5)],
    ['blocks in C (cancel_grace 5 s)', 'blocks', true, few],
  ],
  benchjs: [
    ['awaits a timer with the signal', 'awaits', true, rounds],
    ['fetches with the signal', 'fetches', true, rounds],
    ['yields to a reader', 'yields', true, rounds],
    ['waits for a reader', 'yields', false, Math.ceil(rounds / 5)],
    ['loops (cancel_grace 5 s)', 'loops', true, few],
  ],
};
for (const [what, fn, reads, times] of KINDS[process.env.APP ?? 'bench']) {
  const ms = [];
  for (let round = 0; round < times; round++) ms.push(await latency(fn, reads));
  report({ what, cancelMs: percentiles(ms) });
}
process.exit(0);
