// Contract 2: encodes a function's output once, as the JSON text that callers receive.

/** An output that JSON cannot represent. */
export class Unserializable extends Error {
  code = 'unserializable_output';
}

/** An output over a limit. */
export class TooLarge extends Error {
  code = 'output_too_large';
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns compact JSON text of a value.
 *
 * @param {unknown} value
 * @returns {string}
 * @throws {Unserializable}
 */
export function encode(value) {
  /** The keys from the value to the part that is being encoded. @type {(string | number)[]} */
  const path = [];
  try {
    if (value === undefined) return 'null';
    if (typeof value === 'function' || typeof value === 'symbol') throw new Unserializable(`a ${typeof value}`);
    return JSON.stringify(plain(value, path));
  } catch (error) {
    throw new Unserializable(reason(value, path, error));
  }
}

/**
 * Returns the value as JSON.stringify has to see it. Returns the same object if nothing in it needs a conversion.
 *
 * @param {unknown} value
 * @param {(string | number)[]} path
 * @returns {unknown}
 */
function plain(value, path) {
  switch (typeof value) {
    case 'number':
      if (!Number.isFinite(value)) throw new Unserializable(String(value));
      return value;
    case 'bigint':
      return rawNumber(value);
    case 'object':
      return value === null ? null : plainObject(value, path);
    default:
      return value; // JSON.stringify leaves out functions and symbols, as every library of JavaScript does
  }
}

/**
 * @param {object} value
 * @param {(string | number)[]} path
 * @returns {unknown}
 */
function plainObject(value, path) {
  if (Array.isArray(value)) return plainArray(value, path);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return plainBytes(value, path);
    const { toJSON } = /** @type {{ toJSON?: unknown }} */ (value);
    if (typeof toJSON === 'function') return plain(toJSON.call(value, String(path.at(-1) ?? '')), path);
    if (value instanceof Map) return plainRecord(mapped(value), path);
    if (value instanceof Set) return plainArray([...value], path);
    if (value instanceof Number || value instanceof String || value instanceof Boolean)
      return plain(value.valueOf(), path);
    if (isRefused(value)) throw new Unserializable(`a ${kindOf(value)}`);
  } else if (typeof (/** @type {{ toJSON?: unknown }} */ (value).toJSON) === 'function') {
    return plain(/** @type {{ toJSON: (key: string) => unknown }} */ (value).toJSON(String(path.at(-1) ?? '')), path);
  }
  return plainRecord(/** @type {Record<string, unknown>} */ (value), path);
}

/**
 * @param {unknown[]} value
 * @param {(string | number)[]} path
 */
function plainArray(value, path) {
  /** @type {unknown[] | undefined} */
  let copy;
  for (let at = 0; at < value.length; at++) {
    const item = value[at];
    path.push(at);
    const converted = plain(item, path);
    path.pop();
    if (converted !== item) {
      copy ??= value.slice();
      copy[at] = converted;
    }
  }
  return copy ?? value;
}

/**
 * @param {Record<string, unknown>} value
 * @param {(string | number)[]} path
 */
function plainRecord(value, path) {
  /** @type {Map<string, unknown> | undefined} */
  let changed;
  for (const key of Object.keys(value)) {
    const item = value[key];
    path.push(key);
    const converted = plain(item, path);
    path.pop();
    if (converted !== item) {
      changed ??= new Map();
      changed.set(key, converted);
    }
  }
  if (changed === undefined) return value;
  return Object.fromEntries(Object.keys(value).map((key) => [key, changed.has(key) ? changed.get(key) : value[key]]));
}

/**
 * Bytes are UTF-8 text. Other typed arrays are arrays of numbers.
 *
 * @param {ArrayBuffer | ArrayBufferView} value
 * @param {(string | number)[]} path
 */
function plainBytes(value, path) {
  if (value instanceof Uint8Array || value instanceof ArrayBuffer || value instanceof DataView) {
    try {
      return utf8.decode(value);
    } catch {
      throw new Unserializable('bytes that are not UTF-8 text: give base64 text instead');
    }
  }
  return plainArray([.../** @type {Iterable<unknown>} */ (/** @type {unknown} */ (value))], path);
}

/**
 * A number of any size as JSON text. Bun and older engines have no `rawJSON`.
 *
 * @param {bigint} value
 */
function rawNumber(value) {
  const { rawJSON } = /** @type {{ rawJSON?: (text: string) => unknown }} */ (/** @type {unknown} */ (JSON));
  return rawJSON === undefined ? Number(value) : rawJSON(String(value));
}

/** @param {Map<unknown, unknown>} value */
function mapped(value) {
  return Object.fromEntries(
    [...value].map(([key, item]) => {
      if (typeof key === 'object' || typeof key === 'symbol' || typeof key === 'function')
        throw new Unserializable(`a Map with a key of the type ${kindOf(key)}`);
      return [String(key), item];
    }),
  );
}

/**
 * Objects whose content JSON.stringify does not see. It would send `{}` for them.
 *
 * @param {object} value
 */
const isRefused = (value) =>
  value instanceof Promise ||
  value instanceof Error ||
  value instanceof RegExp ||
  value instanceof WeakMap ||
  value instanceof WeakSet;

/** @param {unknown} value */
const kindOf = (value) =>
  typeof value === 'object' && value !== null ? (value.constructor?.name ?? 'object') : typeof value;

/**
 * @param {unknown} value
 * @param {(string | number)[]} path
 * @param {unknown} error
 */
function reason(value, path, error) {
  const place = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('');
  if (error instanceof RangeError) return `the output (${kindOf(value)}) is nested too deeply`;
  const what = error instanceof Error ? error.message : String(error);
  return place === ''
    ? `the output is not JSON: ${what}`
    : `the output (${kindOf(value)}) is not JSON: ${place} is ${what}`;
}

/**
 * Returns the HTTP status that a result sets by `status_code`, or undefined.
 *
 * @param {unknown} result
 */
export function statusCode(result) {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return undefined;
  const status = /** @type {{ status_code?: unknown }} */ (result).status_code;
  if (typeof status !== 'number' || !Number.isInteger(status)) return undefined;
  return status >= 200 && status <= 599 && ![204, 205, 304].includes(status) ? status : undefined;
}
