// Contract 1: a public function: its description, and the arguments of a call.
import { Refused } from './failures.mjs';

const UNSAFE_INTEGER = /[0-9]{16}/;
const INTEGER = /^-?[0-9]+$/;
const DOC_LIMIT = 200;

/** One public function. */
export class PublicFunction {
  #call;
  #owner;
  #doc;

  /**
   * @param {string} name
   * @param {import('./types.d.ts').AppFunction} call
   * @param {unknown} owner the object that has the function as its property
   * @param {string | undefined} doc
   */
  constructor(name, call, owner, doc) {
    this.name = name;
    this.#call = call;
    this.#owner = owner;
    this.#doc = doc;
  }

  /** @returns {import('./types.d.ts').Description} */
  describe() {
    const doc = this.#doc && { doc: this.#doc.slice(0, DOC_LIMIT) };
    return { name: this.name, ...doc, parameters: [], extra: true };
  }

  /**
   * Calls the function.
   *
   * @param {Record<string, unknown>} parameters
   * @param {import('./types.d.ts').Context} context
   */
  call(parameters, context) {
    return this.#call.call(this.#owner, parameters, context);
  }
}

/**
 * Returns the caller's parameters.
 *
 * @param {Buffer} bytes
 * @returns {Record<string, unknown>}
 * @throws {Refused} if the bytes are not a JSON object
 */
export function parametersOf(bytes) {
  const text = bytes.length === 0 ? '{}' : bytes.toString();
  let value;
  try {
    value = UNSAFE_INTEGER.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
  } catch {
    throw new Refused('invalid_input', 'the parameters are not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Refused('invalid_input', 'the parameters are not a JSON object');
  return value;
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
