// Contract 1: a public function: its description, and the arguments of a call.
import { Schema } from './schemas.mjs';

const DOC_LIMIT = 200;
/** Functions whose result is always a stream. */
const STREAMS = ['[object GeneratorFunction]', '[object AsyncGeneratorFunction]'];

/** @typedef {import('./types.d.ts').Parameters} Parameters */

/** One public function. */
export class PublicFunction {
  #call;
  #owner;
  #doc;
  #validates;
  #types;
  /** @type {Schema | undefined} */
  #schema;

  /**
   * @param {string} name
   * @param {import('./types.d.ts').AppFunction} call
   * @param {unknown} owner the object that has the function as its property
   * @param {string | undefined} doc
   * @param {boolean} validates `false`: the names of parameters are checked, and not their values
   * @param {import('./types.d.ts').FunctionTypes} [types] the types in the source
   */
  constructor(name, call, owner, doc, validates, types = {}) {
    this.name = name;
    this.#call = call;
    this.#owner = owner;
    this.#doc = doc;
    this.#validates = validates;
    const { schema } = call;
    this.#types = types;
    // The declared schema takes precedence over the types in the source.
    const declared = (typeof schema === 'object' || typeof schema === 'function') && schema !== null;
    if (declared) this.#schema = new Schema(schema);
    else if (types.parameters !== undefined) this.#schema = new Schema(types.parameters);
  }

  /** @returns {import('./types.d.ts').Description} */
  describe() {
    const doc = this.#doc?.slice(0, DOC_LIMIT);
    const { parameters: _own, untyped, functions: _all, ...more } = this.#types;
    const kind = STREAMS.includes(Object.prototype.toString.call(this.#call)) ? 'stream' : 'value';
    const types = this.#schema?.describe(
      { kind, ...(doc !== undefined && { summary: doc }), ...more },
      this.#validates,
    );
    return {
      name: this.name,
      ...(doc !== undefined && { doc }),
      ...(types ?? { parameters: [], extra: true, ...(untyped !== undefined && { untyped }) }),
    };
  }

  /**
   * Returns the checked and converted parameters, perhaps as a promise.
   *
   * @param {Parameters} parameters
   * @throws {Refused} if a parameter is wrong
   */
  checked(parameters) {
    return this.#schema?.parse(this.name, parameters, this.#validates) ?? parameters;
  }

  /**
   * Calls the function.
   *
   * @param {Parameters} parameters
   * @param {import('./types.d.ts').Context} context
   */
  call(parameters, context) {
    return this.#call.call(this.#owner, parameters, context);
  }
}
