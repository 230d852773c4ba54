// What must be true of a round, whatever happened in it: written from the contract, apart from the scripts.
import { isDeepStrictEqual } from 'node:util';
import type { Outcome, RunId } from '@inference-proxy/contracts';
import type { History, KnownRun, Reading } from './history.ts';
import { messageOf, resultOf, textOf } from './simulated-worker.ts';

/** A run as the store shows it in the end. */
export interface Final {
  readonly outcome: Outcome | undefined;
  /** How many items are kept no longer, from the first one on. */
  readonly gone: number;
  /** All that are kept, in order. */
  readonly texts: readonly string[];
  /** The attempt that it was in last. */
  readonly token: string | undefined;
  /** Whether a job for its webhook was handed over, and whether the delivery is still remembered as due. */
  readonly delivery: { readonly jobs: number; readonly due: boolean };
  /** Bytes that its record counts beside the flat rate. */
  readonly counted: number;
}

export interface Circumstances {
  readonly leaseMs: number;
  /** This process, or Redis, stood still for so long that even a healthy service may have lost its lease. */
  readonly disturbed: boolean;
}

/** What a run counts may exceed what it holds: allocations are rounded up, and streams have overheads. */
const CONTENT_TIMES = 1.3;
const CONTENT_MORE = 30_000;

const contentOf = ({ outcome, texts }: Final): number =>
  (outcome?.result?.length ?? 0) + JSON.stringify(outcome?.error ?? '').length + texts.join().length;

/** The sentences that do not hold. */
export function judge(history: History, finals: ReadonlyMap<RunId, Final>, circumstances: Circumstances): string[] {
  const wrong = [...history.violations];
  for (const run of history.runs.values()) {
    const final = finals.get(run.runId);
    for (const text of judgeRun(run, final, history, circumstances)) wrong.push(`run ${run.runId}: ${text}`);
  }
  for (const reading of history.readings) {
    const text = judgeReading(reading, history.run(reading.runId), finals.get(reading.runId));
    if (text) wrong.push(`a reader of ${reading.runId} (${reading.mode} after ${reading.from}): ${text}`);
  }
  for (const text of judgeKeys(history)) wrong.push(text);
  return wrong;
}

function* judgeRun(
  run: KnownRun,
  final: Final | undefined,
  history: History,
  { leaseMs, disturbed }: Circumstances,
): Generator<string> {
  if (run.evicted) {
    if (run.promised) yield 'went for room though it was promised';
    return;
  }
  if (run.missed) yield 'was accepted and is unknown to a cancel';
  if (!final?.outcome) {
    if (run.told === 'accepted') yield final ? 'was accepted and never ended' : 'was accepted and lost';
    else if (final) yield 'is there and never ended';
    if (!final && run.starts.length > 0) yield 'was started and is unknown';
    return;
  }
  const { outcome, texts, token, gone } = final;
  if (gone > 0 && !run.windowed) yield `has lost ${gone} of its items, of which all are to be kept`;
  for (const seen of run.outcomes) {
    if (!isDeepStrictEqual(plain(seen.outcome), plain(outcome)))
      yield `has two outcomes: ${show(outcome)} and, seen by ${seen.where}, ${show(seen.outcome)}`;
  }
  if (run.neverStarts && run.starts.length > 0) yield 'started after its cancellation was acknowledged';
  if (new Set(run.starts).size < run.starts.length) yield 'was handed out twice as the same attempt';
  if (run.starts.length > (run.plan.how === 'crash' && !run.plan.head ? 2 : 1))
    yield `was started ${run.starts.length} times`;
  if (gone + texts.length !== outcome.items)
    yield `has ${gone + texts.length} items and an outcome of ${outcome.items}`;
  if (token !== undefined) {
    const expected = texts.map((_, at) => textOf(token, gone + at + 1, run.plan));
    if (!isDeepStrictEqual(texts, expected))
      yield 'has items that are not those of its last attempt, once each and in order';
  }
  yield* judgeOutcome(run, outcome, token, history.tightened);
  if (final.counted > CONTENT_TIMES * contentOf(final) + CONTENT_MORE)
    yield `counts ${final.counted} bytes of the share and holds ${contentOf(final)}`;
  if (disturbed) return;
  if (outcome.state === 'cancelled' && !run.mayBeCancelled)
    yield 'was cancelled though nobody asked for it and nobody left';
  if (outcome.error?.code === 'worker_lost') {
    const worker = token?.split(':')[0] ?? '';
    if ((history.silence.get(worker) ?? 0) < leaseMs * 0.6)
      yield 'ended as worker_lost though its worker was never silent';
  }
  if (final.delivery.jobs < 0) return;
  if (final.delivery.jobs === 0) yield 'has a webhook and no job was handed over for it';
  if (!final.delivery.due) yield 'has an unsettled webhook that nobody remembers';
}

/** The outcome is one that this run can have, and its last attempt's where a function decided it. */
function* judgeOutcome(
  run: KnownRun,
  outcome: Outcome,
  token: string | undefined,
  tightened: boolean,
): Generator<string> {
  const { how, items } = run.plan;
  if (outcome.state === 'succeeded') {
    const count = items.reduce((sum, size) => sum + size, 0);
    if (how !== 'return' && how !== 'crash' && how !== 'stay') yield `succeeded, but wanted to ${how}`;
    if (outcome.items !== count) yield `succeeded with ${outcome.items} of ${count} items`;
    if (run.plan.head && outcome.head?.headers[0]?.[1] !== token) yield 'has the head of another attempt';
    if (count === 0 && outcome.result?.toString() !== resultOf(token ?? '', run.plan))
      yield 'has the result of another attempt';
    return;
  }
  switch (outcome.error?.code) {
    case 'cancelled':
    case 'worker_lost':
      return;
    case 'replica_crashed':
      if (how !== 'crash') yield 'ended as replica_crashed, but nothing crashed';
      if (outcome.error.message !== token) yield 'ended by an attempt that was not its own any more';
      return;
    case 'function_error':
      if (how !== 'raise') yield 'failed, but nothing raised';
      if (outcome.error.message !== messageOf(token ?? '', run.plan))
        yield 'ended by an attempt that was not its own any more';
      return;
    case 'output_too_large':
      if (!tightened) yield 'ended as output_too_large though the share had room';
      return;
    default:
      yield `ended as ${show(outcome)}`;
  }
}

function judgeReading(reading: Reading, run: KnownRun, final: Final | undefined): string | undefined {
  if (!reading.left && !reading.settled && !run.evicted && (run.told === 'accepted' || final))
    return 'was left waiting';
  if (reading.missed && !run.evicted) return 'was told that there is no such run';
  if (reading.mode !== 'items' || !final) return undefined;
  const { gone, token } = final;
  const upTo = reading.from + reading.texts.length;
  const itemOf = (n: number): string | undefined =>
    n > gone || token === undefined ? final.texts[n - gone - 1] : textOf(token, n, run.plan);
  const expected = reading.texts.map((_, at) => itemOf(reading.from + at + 1));
  if (!isDeepStrictEqual(reading.texts, expected))
    return `got other items than the run has: ${reading.texts.map((text) => text.slice(0, 40))}`;
  const all = gone + final.texts.length;
  if (reading.outcome && upTo < all) return `got the outcome after ${upTo} of ${all} items`;
  if (reading.gone && upTo >= gone) return `was told that items after ${upTo} are gone, and ${gone} are`;
  return undefined;
}

/** Of all runs under one idempotency key only one may have started. */
function* judgeKeys(history: History): Generator<string> {
  const started = new Map<string, RunId>();
  for (const run of history.runs.values()) {
    // What went for room has given its key back.
    if (run.key === undefined || run.starts.length === 0 || run.evicted) continue;
    const other = started.get(run.key);
    if (other) yield `runs ${other} and ${run.runId} have one idempotency key and both started`;
    started.set(run.key, run.runId);
  }
}

const plain = (outcome: Outcome) => ({ ...outcome, result: outcome.result?.toString() });
const show = (outcome: Outcome): string => JSON.stringify(plain(outcome));
