// Contract 1 and 5: the forms of values in queries, headers and answers: times, durations, limits, cursors, words. Pure.
import { z } from 'zod';

const LONGEST_LIMIT = 100;
/** A cursor is short, and a filter that is longer than any name finds nothing. */
const LONGEST_VALUE = 512;

/** Nine digits of seconds are over thirty years. */
const WHOLE_SECONDS = /^\d{1,9}$/;
const DECIMAL_SECONDS = /^\d{1,9}(\.\d{1,3})?$/;
const UNIX_SECONDS = /^\d{1,11}$/;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** Returns a time as answers contain it. @param ms Unix ms */
export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** Returns seconds, or undefined if the text is not a whole number of seconds. */
export const wholeSeconds = (text: string): number | undefined => (WHOLE_SECONDS.test(text) ? Number(text) : undefined);

/** Returns milliseconds, or undefined if the text is not a number of seconds. */
export const durationMs = (text: string): number | undefined =>
  DECIMAL_SECONDS.test(text) ? Math.round(Number(text) * 1000) : undefined;

/**
 * Returns Unix ms. `Date.parse` accepts the 31st of any month as a day of the next month.
 * Such a date would redeliver other deliveries than the caller intended.
 */
function timeOf(written: string): number {
  const day = written.slice(0, 10);
  const read = new Date(day);
  return !Number.isNaN(read.getTime()) && read.toISOString().startsWith(day) ? Date.parse(written) : Number.NaN;
}

/** A time in the form of RFC 3339, or Unix seconds. Read as Unix ms. A `+` that was not encoded has become a space. */
export const time = z
  .string()
  .transform((text, context) => {
    const written = text.replace(' ', '+');
    const ms = UNIX_SECONDS.test(text) ? Number(text) * 1000 : RFC_3339.test(written) ? timeOf(written) : Number.NaN;
    if (!Number.isNaN(ms)) return ms;
    context.issues.push({ code: 'custom', message: 'must be a time such as 2026-11-21T04:00:00Z', input: text });
    return z.NEVER;
  })
  .optional();

/** Unix seconds, as in the `exp` of a token. */
export const unixSeconds = z.string().regex(UNIX_SECONDS, 'must be Unix seconds').transform(Number).optional();

/** A filter that takes any name. */
export const filterWord = z.string().min(1, 'is empty').max(LONGEST_VALUE, 'is too long').optional();

/** Returns a filter whose value must be a word of the list. */
export const filterOf = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, `must be one of ${words.join(', ')}`).optional();

/** Parameters of every list: the most entries of a page, and where the page begins. */
export const paging = {
  limit: z
    .string()
    .prefault('50')
    .refine((text) => /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= LONGEST_LIMIT, {
      error: `must be a whole number from 1 to ${LONGEST_LIMIT}`,
    })
    .transform(Number),
  cursor: filterWord,
};
