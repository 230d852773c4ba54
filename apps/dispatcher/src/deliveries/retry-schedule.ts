// Contract 4, "Retries": the time of the next attempt. The verdict decides whether there is a next attempt.

/** Seconds from the end of the attempt before to each attempt. The first attempt has no delay. */
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

/** The longest delay that `Retry-After` may ask for. */
const LONGEST_RETRY_AFTER_S = 24 * 3600;

export interface RetrySchedule {
  /** Seconds, as `defaultSchedule`. Its length is the number of attempts. */
  readonly delaysS: readonly number[];
  /** The fraction by which a delay varies, up and down. Deliveries that failed together are then retried at different times. */
  readonly jitter: number;
}

/**
 * Returns the milliseconds from the end of an attempt to the next attempt, or nothing after the last attempt.
 *
 * @param attempt the number of the attempt just made, from 1
 * @param retryAfterS seconds of the receiver's `Retry-After`; may move the attempt later, never earlier, at most 24 h
 * @param random from 0 to 1, as `Math.random()`
 */
export function nextDelayMs(
  schedule: RetrySchedule,
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
 * Returns the longest duration of a round of attempts, in milliseconds: all delays at their longest, and a day for `Retry-After` and waiting.
 * A round begins with the run's end or a redelivery. A delivery that was parked for longer gets its last attempt even if the circuit is open.
 */
export function longestRoundMs({ delaysS, jitter }: RetrySchedule): number {
  const sumS = delaysS.reduce((sum, delayS) => sum + delayS, 0);
  return Math.round(sumS * (1 + jitter) + LONGEST_RETRY_AFTER_S) * 1000;
}

/** The three forms of an HTTP date (RFC 9110 §5.6.7). The check is rough; it keeps `Date.parse` from guessing at other texts. */
const HTTP_DATE = /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? .*\d\d:\d\d:\d\d( GMT| \d{4})$/;

/**
 * Returns the seconds of a `Retry-After` header (RFC 9110 §10.2.3), at least 0, or nothing for a value that is neither seconds nor a date.
 *
 * @param now Unix milliseconds
 */
export function retryAfterSeconds(header: string, now: number): number | undefined {
  const value = header.trim();
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  if (!HTTP_DATE.test(value)) return undefined;
  // The asctime form names no zone and means UTC.
  const at = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}
