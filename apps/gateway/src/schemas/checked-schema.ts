// Contract 1, "Parameters and types": the part of an announced schema that the gateway checks.
// An app's code makes the announcement, so its schema must not be able to occupy the gateway. Every keyword that is left out accepts
// more values, and the function's process judges those.
import { formats } from './formats.ts';
import { compiledPattern, type SizedPattern } from './patterns.ts';

/** A schema without references, of at most `MOST_PARTS` parts. */
export interface CheckedSchema {
  readonly schema: object | boolean;
  /** The most steps of a check for one byte of the body. */
  readonly cost: number;
  /** The patterns of the schema. */
  readonly patterns: ReadonlyMap<string, SizedPattern>;
}

/** Ajv needs 0.1 to 0.3 ms for a part. */
const MOST_PARTS = 500;
/** The sum of the sizes of a schema's patterns. RE2JS compiles them in about 20 ms, and no call is served meanwhile. */
const MOST_PATTERN_SIZE = 4000;
/** A longer union or tuple is left to the function's process. Its members would be compiled without a break. */
const MOST_MEMBERS = 64;
/** A longer path of references or branches is no schema of a person. */
const DEEPEST = 64;

type Schema = Readonly<Record<string, unknown>>;
type Reader = (value: unknown) => unknown;

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isList = (value: unknown): value is unknown[] =>
  Array.isArray(value) && value.length > 0 && value.length <= MOST_MEMBERS;

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']);

const asType: Reader = (value) =>
  TYPES.has(value) || (Array.isArray(value) && value.length > 0 && value.every((each) => TYPES.has(each)))
    ? value
    : undefined;

/** Python compares whole numbers exactly. A double is exact below 2^53 only. */
const isExact = (value: unknown): boolean => typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER;

const asBound: Reader = (value) => (isExact(value) ? value : undefined);
const asStep: Reader = (value) => (isExact(value) && (value as number) > 0 ? value : undefined);
const asCount: Reader = (value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined);
const asNames: Reader = (value) =>
  Array.isArray(value) && value.every((each) => typeof each === 'string') ? [...new Set(value)] : undefined;
const asChoice: Reader = (value) => (typeof value !== 'number' || isExact(value) ? value : undefined);
const asChoices: Reader = (value) =>
  Array.isArray(value) && value.length > 0 && value.every((each) => asChoice(each) !== undefined) ? value : undefined;
const asFormat: Reader = (value) => (typeof value === 'string' && Object.hasOwn(formats, value) ? value : undefined);

/** Keywords without schemas, and what of each is checked. `uniqueItems` is absent, because its check takes quadratic time. */
const KEYWORDS = new Map<string, Reader>([
  ['type', asType],
  ['enum', asChoices],
  ['const', asChoice],
  ['required', asNames],
  ['format', asFormat],
  ['multipleOf', asStep],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'].map((name) => [name, asBound] as const),
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map(
    (name) => [name, asCount] as const,
  ),
]);

/**
 * Returns the checked part of a schema. Returns undefined if the schema is too large or has no form that the gateway reads:
 * the function's process then judges every value.
 */
export function checkedSchema(announced: unknown): CheckedSchema | undefined {
  try {
    const reading = new Reading(announced);
    return { ...reading.part(announced, []), patterns: reading.patterns };
  } catch (error) {
    if (error instanceof Unread) return undefined;
    throw error;
  }
}

class Unread extends Error {}

type ReadPart = Pick<CheckedSchema, 'schema' | 'cost'>;

/** Reads one announced schema. */
class Reading {
  readonly patterns = new Map<string, SizedPattern>();
  #patternSize = 0;
  #parts = 0;
  readonly #root: unknown;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** @param open the references whose schemas contain this part */
  part(schema: unknown, open: readonly string[], depth = 0): ReadPart {
    if (++this.#parts > MOST_PARTS || depth > DEEPEST) throw new Unread();
    if (typeof schema === 'boolean') return { schema, cost: 1 };
    if (!isObject(schema)) throw new Unread();
    const read: Record<string, unknown> = {};
    /** Steps for the value itself, for the costliest value inside, and for the branches, which all read the same value. */
    const cost = { own: 1, inside: 0, branches: 0 };
    const inside = (value: unknown): object | boolean => {
      const part = this.part(value, open, depth + 1);
      cost.inside = Math.max(cost.inside, part.cost);
      return part.schema;
    };
    const branch = (value: unknown, within = open): object | boolean => {
      const part = this.part(value, within, depth + 1);
      cost.branches += part.cost;
      return part.schema;
    };

    for (const [keyword, reader] of KEYWORDS) {
      const value = Object.hasOwn(schema, keyword) ? reader(schema[keyword]) : undefined;
      if (value === undefined) continue;
      read[keyword] = value;
      cost.own += Array.isArray(value) ? value.length : 1;
    }
    const pattern = typeof schema.pattern === 'string' ? this.#pattern(schema.pattern) : undefined;
    if (pattern !== undefined) {
      read.pattern = schema.pattern;
      cost.own += pattern.size;
    }
    if (isObject(schema.properties)) {
      // Ajv ignores this name.
      if (Object.hasOwn(schema.properties, '__proto__')) throw new Unread();
      const properties = Object.entries(schema.properties);
      read.properties = Object.fromEntries(properties.map(([name, value]) => [name, inside(value)]));
      cost.own += 1;
    }
    if (isList(schema.prefixItems)) read.prefixItems = schema.prefixItems.map(inside);
    if (schema.items !== undefined && (schema.prefixItems === undefined || read.prefixItems !== undefined))
      read.items = inside(schema.items);
    // Names that a pattern allows are no additional properties.
    if (schema.additionalProperties !== undefined && schema.patternProperties === undefined)
      read.additionalProperties = inside(schema.additionalProperties);
    // `oneOf` rejects a value that fits two branches. A branch with fewer rules may fit too often.
    const unions = [schema.anyOf, schema.oneOf].filter(isList);
    const every = (isList(schema.allOf) ? schema.allOf : []).map((each) => branch(each));
    const [union, ...more] = unions.map((each) => ({ anyOf: each.map((one) => branch(one)) }));
    if (union !== undefined) read.anyOf = union.anyOf;
    if (schema.$ref !== undefined) {
      const { $ref } = schema;
      // The check of a recursive schema ends at the first level.
      if (!open.includes(String($ref))) every.push(branch(this.#target($ref), [...open, String($ref)]));
    }
    if (every.length + more.length > 0) read.allOf = [...every, ...more];
    return { schema: read, cost: Math.max(cost.own, cost.inside) + cost.branches };
  }

  #pattern(text: string): SizedPattern | undefined {
    const known = this.patterns.get(text);
    if (known !== undefined || this.#patternSize >= MOST_PATTERN_SIZE) return known;
    const pattern = compiledPattern(text);
    this.#patternSize += pattern?.size ?? text.length;
    if (pattern !== undefined) this.patterns.set(text, pattern);
    return pattern;
  }

  /** Returns the schema at a local reference, such as `#/$defs/Node`. */
  #target($ref: unknown): unknown {
    if (typeof $ref !== 'string' || !/^#(\/|$)/.test($ref)) throw new Unread();
    let found: unknown = this.#root;
    for (const step of $ref.split('/').slice(1)) {
      const name = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
      if (!isObject(found) || !Object.hasOwn(found, name)) throw new Unread();
      found = found[name];
    }
    return found;
  }
}

/** References are parts of URLs. A name with a lone `%` is kept. */
function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
