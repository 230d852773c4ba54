// Contract 1, "Parameters and types": the formats that the gateway checks. The function's process checks the same grammar
// (apps/worker/harness/python), so that a text which the gateway accepts can be converted. Every expression takes linear time.

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?$/;
// pydantic's time in seconds, without the days, has 32 bits.
const DURATION = /^-?P(?=\d|T\d)(?:\d{1,8}D)?(?:T(?=\d)(?:\d{1,6}H)?(?:\d{1,6}M)?(?:\d{1,8}(?:\.\d{1,6})?S)?)?$/;
const UUID = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;
const DECIMAL = /^[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,4})?$/;

/** The length of `YYYY-MM-DD`. */
const DATE_LENGTH = 10;
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);

/** Returns the number of the two digits at a position. */
const two = (text: string, at: number): number => Number(text.slice(at, at + 2));

/** A day of the Gregorian calendar, year 0001 to 9999. */
function isDate(text: string): boolean {
  if (!DATE.test(text)) return false;
  const year = Number(text.slice(0, 4));
  const [month, day] = [two(text, 5), two(text, 8)];
  const days = month === 2 && isLeap(year) ? 29 : DAYS[month - 1];
  return year >= 1 && days !== undefined && day >= 1 && day <= days;
}

/** A time of day. Seconds and the offset may be absent. */
function isTime(text: string): boolean {
  if (!TIME.test(text) || two(text, 0) > 23 || two(text, 3) > 59) return false;
  if (text[5] === ':' && two(text, 6) > 59) return false;
  const hasOffset = text.at(-6) === '+' || text.at(-6) === '-';
  return !hasOffset || (two(text, text.length - 5) <= 23 && two(text, text.length - 2) <= 59);
}

/** A date and a time, separated by `T` or one space. */
const isDateTime = (text: string): boolean =>
  (text[DATE_LENGTH] === 'T' || text[DATE_LENGTH] === ' ') &&
  isDate(text.slice(0, DATE_LENGTH)) &&
  isTime(text.slice(DATE_LENGTH + 1));

/** Every other format is an annotation: the function's process judges it. */
export const formats: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  time: isTime,
  'date-time': isDateTime,
  duration: (text) => DURATION.test(text),
  uuid: (text) => UUID.test(text),
  decimal: (text) => DECIMAL.test(text),
};
