// Contract 4, "Retries" and "Isolation": the meaning of an attempt for its delivery and for its receiver's circuit. Both functions are pure.
import type { AttemptRecord, CircuitSignal } from '@inference-proxy/store';
import { nextDelayMs, type RetrySchedule } from './retry-schedule.ts';

/** Contract 4 allows three more attempts after such an answer, so the fourth such answer ends the delivery. */
const REFUSALS_TO_STOP = 4;
/** Temporary 4xx answers: a receiver answers 404 during its deployment, and 408 or 429 under load. */
const PASSING = new Set([404, 408, 429]);

export type Verdict =
  | { readonly state: 'delivered' }
  | { readonly state: 'failed'; readonly why: 'gone' | 'refused' | 'altered' | 'exhausted' }
  | { readonly state: 'pending'; readonly delayMs: number; readonly refusals: number };

/** The attempts of a delivery in this round. */
export interface History {
  /** The number of attempts, including the attempt just made. */
  readonly attempt: number;
  /** The number of earlier attempts that got a 4xx answer that is not temporary. */
  readonly refusals: number;
  /** The delivery was parked until the end of its schedule, so this attempt is its last. */
  readonly overdue: boolean;
}

/** Returns the state of a delivery after an attempt. @param random from 0 to 1, as `Math.random()` */
export function verdict(result: AttemptRecord, history: History, schedule: RetrySchedule, random: number): Verdict {
  const { status } = result;
  if (status !== undefined && status >= 200 && status <= 299) return { state: 'delivered' };
  if (status === 410) return { state: 'failed', why: 'gone' };
  // No later attempt can sign. A redelivery needs the original record in the store.
  if (result.errorClass === 'altered') return { state: 'failed', why: 'altered' };
  const refused = status !== undefined && status >= 400 && status <= 499 && !PASSING.has(status);
  const refusals = history.refusals + (refused ? 1 : 0);
  if (refused && refusals >= REFUSALS_TO_STOP) return { state: 'failed', why: 'refused' };
  if (history.overdue) return { state: 'failed', why: 'exhausted' };
  const delayMs = nextDelayMs(schedule, history.attempt, result.retryAfterS, random);
  return delayMs === undefined ? { state: 'failed', why: 'exhausted' } : { state: 'pending', delayMs, refusals };
}

/** Failures of the receiver. The other error classes do not show whether the receiver works. */
const RECEIVER_FAILURES: ReadonlySet<string | undefined> = new Set(['dns', 'refused', 'tls', 'timeout', 'reset']);

/** Returns the meaning of an attempt for its receiver's circuit. An attempt that was not sent, or whose answer is not HTTP, has no meaning. */
export function circuitSignal({ status, errorClass }: AttemptRecord): CircuitSignal {
  if (status !== undefined) return status === 429 || status >= 500 ? 'bad' : 'good';
  return RECEIVER_FAILURES.has(errorClass) ? 'bad' : 'none';
}
