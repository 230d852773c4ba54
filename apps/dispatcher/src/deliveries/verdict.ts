// Contract 4: what follows from an attempt. Pure, so that the whole policy is one table in its test.
import type { AttemptRecord } from './records.ts';
import { nextDelayMs, type Schedule } from './schedule.ts';

/** "Other 4xx: three more tries": the fourth such answer ends it. */
const REFUSALS_TO_STOP = 4;
/** 4xx answers that pass: a receiver that is being deployed answers 404, a busy one 408 or 429. */
const PASSING = new Set([404, 408, 429]);

export type Verdict =
  | { readonly state: 'delivered' }
  | { readonly state: 'failed'; readonly why: 'gone' | 'refused' | 'altered' | 'exhausted' }
  | { readonly state: 'pending'; readonly delayMs: number; readonly refusals: number };

/** How often a delivery was tried in this round, the attempt just made included, and how many of the earlier attempts were refused. */
export interface History {
  readonly attempt: number;
  /** Answers with a 4xx that does not pass. */
  readonly refusals: number;
  /** It was parked until its schedule had run out: this was the last one. */
  readonly overdue: boolean;
}

/** @param random from 0 to 1, as `Math.random()` */
export function verdict(result: AttemptRecord, history: History, schedule: Schedule, random: number): Verdict {
  const { status } = result;
  if (status !== undefined && status >= 200 && status <= 299) return { state: 'delivered' };
  if (status === 410) return { state: 'failed', why: 'gone' };
  // No later attempt can sign: whoever changed the record has to change it back first, and then ask for a redelivery.
  if (result.errorClass === 'altered') return { state: 'failed', why: 'altered' };
  const refused = status !== undefined && status >= 400 && status <= 499 && !PASSING.has(status);
  const refusals = history.refusals + (refused ? 1 : 0);
  if (refused && refusals >= REFUSALS_TO_STOP) return { state: 'failed', why: 'refused' };
  if (history.overdue) return { state: 'failed', why: 'exhausted' };
  const delayMs = nextDelayMs(schedule, history.attempt, result.retryAfterS, random);
  return delayMs === undefined ? { state: 'failed', why: 'exhausted' } : { state: 'pending', delayMs, refusals };
}
