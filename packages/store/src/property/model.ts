// Judges a round: the sentences that must hold after any events. Written from the contract, independently of the scripts.
import { isDeepStrictEqual } from 'node:util';
import type { Outcome, RunId } from '@inference-proxy/contracts';
import type { History, KnownRun, Reading } from './history.ts';
import { messageOf, resultOf, textOf } from './simulated-worker.ts';

/** The final state of a run in the store. */
export interface Final {
  readonly outcome: Outcome | undefined;
  /** The stored result, also if it is too large to be a part of the outcome. */
  readonly result: string | undefined;
  /** Number of dropped items. They are the first items of the run. */
  readonly gone: number;
  /** The kept items, in order. */
  readonly texts: readonly string[];
  /** Token of the run's last attempt. */
  readonly token: string | undefined;
  /** Number of handed-over jobs of its webhook, and whether the delivery is still stored as due. */
  readonly delivery: { readonly jobs: number; readonly due: boolean };
  /** Bytes that the run's record counts beside the flat rate. */
  readonly counted: number;
}

export interface Circumstances {
  readonly leaseMs: number;
  /** This process or Redis stood still for so long that even a healthy service may have lost its lease. */
  readonly disturbed: boolean;
}

/** Part of a lease. After a shorter silence, no lease can have expired, also if the test's timers are late. */
const SILENT = 0.6;

/** Factor and sum by which a run's counted bytes may exceed its content: allocations are rounded up, and streams have overheads. */
const CONTENT_TIMES = 1.3;
const CONTENT_MORE = 30_000;

const contentOf = ({ outcome, result, texts }: Final): number =>
  (result?.length ?? 0) + JSON.stringify(outcome?.error ?? '').length + texts.join().length;

/** Returns the sentences that do not hold. */
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
    if (run.promised) yield 'was evicted, and was promised';
    return;
  }
  if (run.missed) yield 'was accepted, and a cancel did not find it';
  if (!final?.outcome) {
    if (run.answer === 'accepted') yield final ? 'was accepted and never ended' : 'was accepted and lost';
    else if (final) yield 'is stored and never ended';
    if (!final && run.starts.length > 0) yield 'was started and is unknown';
    return;
  }
  const { outcome, texts, token, gone } = final;
  if (gone > 0 && !run.windowed) yield `has lost ${gone} of its items, and all items must be kept`;
  for (const seen of run.outcomes) {
    if (!isDeepStrictEqual(plain(seen.outcome), plain(outcome)))
      yield `has two outcomes: ${show(outcome)} and, seen by ${seen.where}, ${show(seen.outcome)}`;
  }
  if (run.neverStarts && run.starts.length > 0) yield 'started after its cancellation was acknowledged';
  if (new Set(run.starts).size < run.starts.length) yield 'was taken twice as the same attempt';
  if (run.starts.length > (run.plan.how === 'crash' && !run.plan.head ? 2 : 1))
    yield `was started ${run.starts.length} times`;
  if (gone + texts.length !== outcome.items)
    yield `has ${gone + texts.length} items and an outcome of ${outcome.items}`;
  if (token !== undefined) {
    const expected = texts.map((_, at) => textOf(token, gone + at + 1, run.plan));
    if (!isDeepStrictEqual(texts, expected))
      yield 'does not have the items of its last attempt, once each and in order';
  }
  yield* judgeOutcome(run, outcome, final.result, token, history.tightened);
  if (final.counted > CONTENT_TIMES * contentOf(final) + CONTENT_MORE)
    yield `counts ${final.counted} bytes of the share and holds ${contentOf(final)}`;
  if (disturbed) return;
  /** Whether a worker or gateway may have lost its lease. */
  const wasSilent = (id: string): boolean => history.silenceOf(id) >= leaseMs * SILENT;
  if (outcome.state === 'cancelled' && !run.mayBeCancelled && ![...run.readAt].some(wasSilent))
    yield 'was cancelled without a cancel and without a disconnect, and none of its gateways was silent';
  if (outcome.error?.code === 'worker_lost') {
    if (!wasSilent(token?.split(':')[0] ?? '')) yield 'ended as worker_lost, and its worker was never silent';
  }
  if (final.delivery.jobs < 0) return;
  if (final.delivery.jobs === 0) yield 'has a webhook without a handed-over job';
  if (!final.delivery.due) yield 'has an unfinished delivery that is not stored as due';
}

/** Returns the faults of an outcome. The run must be able to have it. If a function decided the outcome, it must belong to the last attempt. */
function* judgeOutcome(
  run: KnownRun,
  outcome: Outcome,
  result: string | undefined,
  token: string | undefined,
  tightened: boolean,
): Generator<string> {
  const { how, items } = run.plan;
  if (outcome.state === 'succeeded') {
    const count = items.reduce((sum, size) => sum + size, 0);
    if (how !== 'return' && how !== 'crash' && how !== 'stay') yield `succeeded, and its plan was to ${how}`;
    if (outcome.items !== count) yield `succeeded with ${outcome.items} of ${count} items`;
    if (run.plan.head && outcome.head?.headers[0]?.[1] !== token) yield 'has the head of another attempt';
    if (count === 0 && result !== resultOf(token ?? '', run.plan)) yield 'has the result of another attempt';
    return;
  }
  switch (outcome.error?.code) {
    case 'cancelled':
    case 'worker_lost':
      return;
    case 'replica_crashed':
      if (how !== 'crash') yield 'ended as replica_crashed, and nothing crashed';
      if (outcome.error.message !== token) yield 'was ended by an attempt that had lost the run';
      return;
    case 'function_error':
      if (how !== 'raise') yield 'failed, and nothing raised';
      if (outcome.error.message !== messageOf(token ?? '', run.plan))
        yield 'was ended by an attempt that had lost the run';
      return;
    case 'output_too_large':
      if (!tightened) yield 'ended as output_too_large, and the share had room';
      return;
    default:
      yield `ended as ${show(outcome)}`;
  }
}

function judgeReading(reading: Reading, run: KnownRun, final: Final | undefined): string | undefined {
  if (!reading.left && !reading.settled && !run.evicted && (run.answer === 'accepted' || final))
    return 'never got an end';
  if (reading.missed && !run.evicted) return 'got not_found';
  if (reading.mode !== 'items' || !final) return undefined;
  const { gone, token } = final;
  const upTo = reading.from + reading.texts.length;
  const itemOf = (n: number): string | undefined =>
    n > gone || token === undefined ? final.texts[n - gone - 1] : textOf(token, n, run.plan);
  const expected = reading.texts.map((_, at) => itemOf(reading.from + at + 1));
  if (!isDeepStrictEqual(reading.texts, expected))
    return `got items that the run does not have: ${reading.texts.map((text) => text.slice(0, 40))}`;
  const all = gone + final.texts.length;
  if (reading.outcome && upTo < all) return `got the outcome after ${upTo} of ${all} items`;
  if (reading.gone && upTo >= gone) return `got items_gone after item ${upTo}, and only ${gone} items are gone`;
  return undefined;
}

/** At most one of the runs under one idempotency key may have started. */
function* judgeKeys(history: History): Generator<string> {
  const started = new Map<string, RunId>();
  for (const run of history.runs.values()) {
    // An evicted run has freed its key.
    if (run.key === undefined || run.starts.length === 0 || run.evicted) continue;
    const other = started.get(run.key);
    if (other) yield `runs ${other} and ${run.runId} have the same idempotency key, and both started`;
    started.set(run.key, run.runId);
  }
}

const plain = (outcome: Outcome) => ({ ...outcome, result: outcome.result?.toString() });
const show = (outcome: Outcome): string => JSON.stringify(plain(outcome));
