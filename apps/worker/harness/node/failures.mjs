// Contract 2, "Errors": converts what a function throws to the fields of an `error` message.
import { encode, TooLarge, Unserializable } from './output.mjs';

const TEXT_LIMIT = 16 * 1024;
const SECONDS = /^[0-9]{1,9}$/;
const HTTP_DATE = /^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$/;

/** Stacks leave out the frames of the harness, because they do not help an app's author. */
const HARNESS = new URL('.', import.meta.url).href;
/** Functions run within AsyncLocalStorage. */
const STORAGE = '(node:internal/async_local_storage/';

/** Reports a call that never reaches the function: unknown, or with wrong arguments. */
export class Refused extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {readonly import('./types.d.ts').Detail[]} [details]
   */
  constructor(code, message, details) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/**
 * Returns the fields of an error. Also prints a function's stack into the run's log.
 *
 * @param {unknown} error
 * @param {boolean} debug
 * @returns {import('./types.d.ts').ErrorFields}
 */
export function errorFields(error, debug) {
  if (error instanceof Refused) {
    const { code, message, details } = error;
    return details === undefined ? { code, message } : { code, message, details };
  }
  if (error instanceof Unserializable || error instanceof TooLarge) {
    process.stderr.write(`${error.code}: ${error.message}\n`);
    return { code: error.code, message: error.message };
  }
  const text = formatted(error);
  process.stderr.write(`${text}\n`);
  const fields = { code: 'function_error', type: typeOf(error), ...messageAndStatus(error) };
  return debug ? { ...fields, traceback: text } : fields;
}

/**
 * Returns the class of an error. Most classes of errors do not set `name`.
 *
 * @param {unknown} error
 * @returns {string}
 */
export function typeOf(error) {
  if (typeof error !== 'object' || error === null) return typeof error;
  const name = attribute(error, 'name');
  if (error instanceof Error && typeof name === 'string' && name !== '' && name !== 'Error') return name;
  const made = error.constructor?.name;
  return typeof made === 'string' && made !== '' ? made : 'Error';
}

/**
 * Returns the text of an error.
 *
 * @param {unknown} error
 * @returns {string}
 */
export function messageOf(error) {
  try {
    const message = typeof error === 'object' && error !== null ? attribute(error, 'message') : undefined;
    return (typeof message === 'string' ? message : String(error)).slice(0, TEXT_LIMIT);
  } catch {
    return '(the error has no text)';
  }
}

/**
 * Returns the stack with the frames of the app, and the stacks of its causes.
 *
 * @param {unknown} error
 * @returns {string}
 */
export function formatted(error) {
  const stacks = [stackOf(error)];
  let cause = causeOf(error);
  for (let depth = 0; cause !== undefined && depth < 5; depth++, cause = causeOf(cause))
    stacks.push(`Caused by: ${stackOf(cause)}`);
  return stacks.join('\n').slice(-TEXT_LIMIT);
}

/** @param {unknown} error */
const causeOf = (error) => (error instanceof Error ? (attribute(error, 'cause') ?? undefined) : undefined);

/** @param {unknown} error */
function stackOf(error) {
  const stack = typeof error === 'object' && error !== null ? attribute(error, 'stack') : undefined;
  if (typeof stack !== 'string') return `${typeOf(error)}: ${messageOf(error)}`;
  return stack
    .split('\n')
    .filter((line) => !line.includes(HARNESS) && !line.includes(STORAGE))
    .join('\n');
}

/**
 * Returns the message, and the status and Retry-After of an error with a status.
 *
 * @param {unknown} error
 */
function messageAndStatus(error) {
  const message = messageOf(error);
  if (typeof error !== 'object' || error === null) return { message };
  const status = ['status_code', 'statusCode', 'status'].map((name) => attribute(error, name)).find(isErrorStatus);
  if (status === undefined) return { message };
  const detail = attribute(error, 'detail');
  const fields = { message: detail === undefined || detail === null ? message : textOf(detail), status };
  const delay = status === 429 || status === 503 ? retryAfter(attribute(error, 'headers')) : undefined;
  return delay === undefined ? fields : { ...fields, retry_after: delay };
}

/**
 * @param {unknown} status
 * @returns {status is number}
 */
const isErrorStatus = (status) =>
  typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599;

/**
 * Returns a property, or undefined if it cannot be read.
 *
 * @param {object} error
 * @param {string} name
 * @returns {unknown}
 */
function attribute(error, name) {
  try {
    return /** @type {Record<string, unknown>} */ (error)[name];
  } catch {
    return undefined;
  }
}

/** @param {unknown} detail */
function textOf(detail) {
  try {
    return (typeof detail === 'string' ? detail : encode(detail)).slice(0, TEXT_LIMIT);
  } catch {
    return messageOf(detail);
  }
}

/**
 * Returns whole seconds or an HTTP date (RFC 9110, section 10.2.3), else undefined.
 *
 * @param {unknown} headers an object, a Map or a `Headers`
 */
function retryAfter(headers) {
  try {
    if (typeof headers !== 'object' || headers === null) return undefined;
    const entries =
      Symbol.iterator in headers ? [.../** @type {Iterable<[unknown, unknown]>} */ (headers)] : Object.entries(headers);
    for (const [name, value] of entries) {
      const text = String(value).trim();
      if (String(name).toLowerCase() === 'retry-after' && (SECONDS.test(text) || HTTP_DATE.test(text))) return text;
    }
  } catch {
    // an object of the app that cannot be read
  }
  return undefined;
}
