// PROTOCOL.md, "From the worker": the parameters of a call, perhaps with the files of a form.
import { Refused } from './failures.mjs';

const UNSAFE_INTEGER = /[0-9]{16}/;
const INTEGER = /^-?[0-9]+$/;
/** Begins parameters with files. JSON cannot begin with this byte. */
const MARK = 0;
const NEWLINE = 10;

/**
 * @typedef {import('./types.d.ts').Parameters} Parameters
 * @typedef {{ parameter: string, list?: boolean, name: string, content_type: string, bytes: number }} FileHeader
 */

/**
 * Returns the caller's parameters. Each file of a form is a `File`.
 *
 * @param {Buffer} bytes
 * @returns {Parameters}
 * @throws {Refused} if the bytes are not a JSON object
 */
export function parametersOf(bytes) {
  if (bytes[0] === MARK) return withFiles(bytes);
  const value = jsonOf(bytes.length === 0 ? '{}' : bytes.toString());
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Refused('invalid_input', 'the parameters are not a JSON object');
  return value;
}

/**
 * PROTOCOL.md, "Parameters with files".
 *
 * @param {Buffer} bytes
 * @returns {Parameters}
 */
function withFiles(bytes) {
  const end = bytes.indexOf(NEWLINE);
  const { parameters, files } = /** @type {{ parameters: Parameters, files: FileHeader[] }} */ (
    jsonOf(bytes.toString('utf8', 1, end))
  );
  let at = end + 1;
  for (const { parameter, list, name, content_type: type, bytes: length } of files) {
    const content = /** @type {Buffer<ArrayBuffer>} */ (bytes.subarray(at, at + length));
    const file = new File([content], name, { type });
    at += length;
    if (list === true) parameters[parameter] = [.../** @type {File[]} */ (parameters[parameter] ?? []), file];
    else parameters[parameter] = file;
  }
  return parameters;
}

/** @param {string} text */
function jsonOf(text) {
  try {
    return UNSAFE_INTEGER.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
  } catch {
    throw new Refused('invalid_input', 'the parameters are not JSON');
  }
}

/**
 * Keeps integers past 2^53 exact: they become BigInt.
 *
 * @param {string} _key
 * @param {unknown} value
 * @param {{ source?: string }} [context] engines without it give the nearest number
 */
function exact(_key, value, context) {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && INTEGER.test(source) ? BigInt(source) : value;
}
