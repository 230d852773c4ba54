// Contract 4: when a delivery is tried again. Data and arithmetic; what is tried again at all is the verdict's.

/** Seconds before each attempt, counted from the end of the attempt before; the first is made at once. */
export const defaultSchedule: readonly number[] = [
  0,
  5,
  5 * 60,
  30 * 60,
  2 * 3600,
  5 * 3600,
  10 * 3600,
  14 * 3600,
  20 * 3600,
  24 * 3600,
];

/** `Retry-After` may put an attempt off by this much and no more. */
const LONGEST_RETRY_AFTER_S = 24 * 3600;

export interface Schedule {
  /** Seconds, as `defaultSchedule`. Its length is the number of attempts. */
  readonly delaysS: readonly number[];
  /** Fraction of a delay by which it varies, up and down: receivers that failed together are not all tried together. */
  readonly jitter: number;
}

/**
 * Milliseconds from the end of an attempt to the next one; nothing when that attempt was the last.
 *
 * @param attempt the one just made, from 1
 * @param retryAfterS what the receiver asked for: moves the attempt later, never earlier, at most 24 h
 * @param random from 0 to 1, as `Math.random()`
 */
export function nextDelayMs(
  schedule: Schedule,
  attempt: number,
  retryAfterS: number | undefined,
  random: number,
): number | undefined {
  const delayS = schedule.delaysS[attempt];
  if (delayS === undefined) return undefined;
  const varied = delayS * (1 + schedule.jitter * (2 * random - 1));
  return Math.round(Math.max(varied, Math.min(retryAfterS ?? 0, LONGEST_RETRY_AFTER_S)) * 1000);
}

/**
 * How long a round of attempts may last, from the run's end or the redelivery that began it, milliseconds: all delays at their longest and
 * a day for `Retry-After` and waiting. What was parked for longer has its last attempt whether its receiver's circuit is open or not.
 */
export function longestRoundMs({ delaysS, jitter }: Schedule): number {
  const sumS = delaysS.reduce((sum, delayS) => sum + delayS, 0);
  return Math.round(sumS * (1 + jitter) + LONGEST_RETRY_AFTER_S) * 1000;
}

/** The three forms of an HTTP date (RFC 9110 §5.6.7), far enough to keep `Date.parse` from guessing at anything else. */
const HTTP_DATE = /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? .*\d\d:\d\d:\d\d( GMT| \d{4})$/;

/**
 * Seconds that a `Retry-After` (RFC 9110 §10.2.3) asks for, at least 0; nothing where it is neither seconds nor a date.
 *
 * @param now Unix milliseconds
 */
export function retryAfterSeconds(header: string, now: number): number | undefined {
  const value = header.trim();
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  if (!HTTP_DATE.test(value)) return undefined;
  // asctime's form names no zone; it means UTC.
  const at = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}
