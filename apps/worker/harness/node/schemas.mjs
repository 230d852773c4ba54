// Contract 1, "Parameters and types": the schema that an app declares beside a function (`run.schema`). It announces the parameters, and its
// own parser checks and converts the values of a call.
import { Refused } from './failures.mjs';

const TARGET = 'draft-2020-12';
const VIOLATIONS_LIMIT = 20;
const KEY_LIMIT = 200;
const MESSAGE_LIMIT = 200;

/**
 * @typedef {import('./types.d.ts').Detail} Detail
 * @typedef {import('./types.d.ts').Description} Description
 * @typedef {import('./types.d.ts').Issue} Issue
 * @typedef {import('./types.d.ts').Parameters} Parameters
 */

/** The declared schema of one function. */
export class Schema {
  /** Checks and converts. Undefined for plain JSON Schema. @type {((value: unknown) => unknown) | undefined} */
  #validate;
  /** The parameters as JSON Schema, if the declaration has this form. @type {Record<string, unknown> | undefined} */
  #json;
  /** Why there is no JSON Schema. @type {string | undefined} */
  #untyped;
  /** The parameters' names and schemas. @type {Record<string, unknown>} */
  #properties = {};
  /** @type {readonly string[]} */
  #required = [];

  /** @param {object} declared a Standard Schema, a Standard JSON Schema or plain JSON Schema */
  constructor(declared) {
    const standard = /** @type {Record<string, unknown> | undefined} */ (property(declared, '~standard'));
    const validate = standard?.validate;
    if (typeof validate === 'function') this.#validate = (value) => validate.call(standard, value);
    try {
      const json = jsonSchemaOf(declared, standard);
      if (json === undefined) this.#untyped = 'its schema cannot be converted to JSON Schema';
      else if (json.type !== 'object') this.#untyped = 'its schema does not describe an object of parameters';
      else this.#announce(json);
    } catch (error) {
      this.#untyped = `its schema cannot be converted to JSON Schema: ${error instanceof Error ? error.message : error}`;
    }
  }

  /**
   * Returns the fields of the function's description.
   *
   * @param {object} more the fields of the function's schema beside `parameters`
   * @param {boolean} validates `false`: the gateway checks names only
   * @returns {Omit<Description, 'name' | 'doc'>}
   */
  describe(more, validates) {
    if (this.#json === undefined) return { parameters: [], extra: true, untyped: this.#untyped };
    const any = Object.fromEntries(Object.keys(this.#properties).map((name) => [name, {}]));
    const parameters = validates ? this.#json : { ...this.#json, properties: any };
    return {
      parameters: Object.entries(this.#properties).map(([name, schema]) => this.#parameter(name, schema)),
      extra: this.#json.additionalProperties !== false,
      schema: { ...more, parameters },
    };
  }

  /**
   * Returns the checked and converted parameters, perhaps as a promise.
   *
   * @param {string} name the function's name
   * @param {Parameters} parameters
   * @param {boolean} validates `false`: only names are checked
   * @returns {Parameters | PromiseLike<Parameters>}
   * @throws {Refused} with every wrong parameter
   */
  parse(name, parameters, validates) {
    const wrong = this.#wrongNames(parameters);
    if (wrong.length > 0) throw refusal(name, wrong);
    if (this.#validate === undefined || !validates) return parameters;
    const result = this.#validate(parameters);
    const checked = (/** @type {unknown} */ settled) => parsed(name, parameters, settled);
    return result instanceof Promise ? result.then(checked) : checked(result);
  }

  /** @param {Record<string, unknown>} json */
  #announce({ $schema: _version, '~standard': _standard, ...json }) {
    this.#properties = /** @type {Record<string, unknown>} */ (json.properties ?? {});
    this.#required = /** @type {readonly string[]} */ (json.required ?? []);
    this.#json = { ...json, properties: this.#properties, required: this.#required };
  }

  /**
   * @param {string} name
   * @param {unknown} schema
   */
  #parameter(name, schema) {
    const required = this.#required.includes(name);
    const fallback = typeof schema === 'object' && schema !== null ? property(schema, 'default') : undefined;
    return { name, required, ...(fallback !== undefined && { default: fallback }) };
  }

  /** @param {Parameters} parameters */
  #wrongNames(parameters) {
    const missing = this.#required
      .filter((name) => !Object.hasOwn(parameters, name))
      .map((name) => detail([name], 'Field required', 'missing'));
    if (this.#json?.additionalProperties !== false) return missing;
    const unexpected = Object.keys(parameters)
      .filter((name) => !Object.hasOwn(this.#properties, name))
      .map((name) => detail([name], 'Unexpected parameter', 'unexpected'));
    return [...missing, ...unexpected];
  }
}

/**
 * Returns the JSON Schema of a declaration. Libraries have different names for the conversion.
 *
 * @param {object} declared
 * @param {Record<string, unknown> | undefined} standard
 * @returns {Record<string, unknown> | undefined}
 */
function jsonSchemaOf(declared, standard) {
  const input = property(standard?.jsonSchema, 'input');
  if (typeof input === 'function') return input.call(standard?.jsonSchema, { target: TARGET });
  const { toJSONSchema, toJsonSchema } = /** @type {Record<string, unknown>} */ (declared);
  if (typeof toJSONSchema === 'function') return toJSONSchema.call(declared, { io: 'input' });
  if (typeof toJsonSchema === 'function') return toJsonSchema.call(declared);
  return standard === undefined ? /** @type {Record<string, unknown>} */ (declared) : undefined;
}

/**
 * @param {string} name
 * @param {Parameters} parameters
 * @param {unknown} result of a Standard Schema's `validate`
 */
function parsed(name, parameters, result) {
  const { issues, value } = /** @type {{ issues?: readonly Issue[], value?: unknown }} */ (result);
  if (issues !== undefined)
    throw refusal(
      name,
      issues.flatMap((issue) => detailsOf(issue, parameters)),
    );
  return /** @type {Parameters} */ (value);
}

/**
 * @param {Issue} issue
 * @param {Parameters} parameters
 */
function detailsOf({ message, path = [], code, keys }, parameters) {
  const place = path
    .map((part) => (typeof part === 'object' ? part.key : part))
    .map((key) => (typeof key === 'number' ? key : String(key)));
  if (code === 'unrecognized_keys' && keys !== undefined) {
    const deeper = place.length > 0;
    return keys.map((key) =>
      detail(
        [...place, key],
        deeper ? 'Extra inputs are not permitted' : 'Unexpected parameter',
        deeper ? 'extra_forbidden' : 'unexpected',
      ),
    );
  }
  if (isMissing(parameters, place)) return [detail(place, 'Field required', 'missing')];
  return [detail(place, message, 'value_error')];
}

/**
 * @param {unknown} parameters
 * @param {readonly (string | number)[]} place
 */
function isMissing(parameters, place) {
  /** @type {unknown} */
  let at = parameters;
  for (const key of place) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return true;
    at = /** @type {Record<string | number, unknown>} */ (at)[key];
  }
  return false;
}

/**
 * @param {readonly (string | number)[]} place
 * @param {string} msg
 * @param {string} type
 * @returns {Detail}
 */
const detail = (place, msg, type) => ({
  loc: ['body', ...place.map((key) => (typeof key === 'string' ? key.slice(0, KEY_LIMIT) : key))],
  msg,
  type,
});

/**
 * @param {string} name the function's name
 * @param {readonly Detail[]} found
 */
function refusal(name, found) {
  const details = found.slice(0, VIOLATIONS_LIMIT); // the caller controls their number and their length
  const names = details.map(({ loc, type }) => `${loc.slice(1).join('.')} (${type})`).join(', ');
  return new Refused('invalid_input', `wrong parameters for ${name}: ${names}`.slice(0, MESSAGE_LIMIT), details);
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {unknown}
 */
const property = (value, name) =>
  (typeof value === 'object' || typeof value === 'function') && value !== null
    ? /** @type {Record<string, unknown>} */ (value)[name]
    : undefined;
