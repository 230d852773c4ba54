// Contract 1, "Body": converts the text of a form's field to the JSON that the parameter's schema requires. Pure.

type Schema = Readonly<Record<string, unknown>>;

/** The values that a schema accepts, as far as the conversion of text needs them. */
export interface AcceptedValues {
  /** The schema names no type. */
  any: boolean;
  readonly types: Set<string>;
  /** Members of enumerations. */
  readonly choices: unknown[];
  /** Bytes: a file is accepted. */
  binary: boolean;
  /** The schema of the items, if a list is accepted. */
  items?: unknown;
}

/** A longer path of references or branches is no schema of a person. */
const DEEPEST = 16;
const UNIONS = ['anyOf', 'oneOf', 'allOf'] as const;
const NUMBER = /^\+?(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;
const TRUE = new Set(['true', '1', 'on', 'yes', 'y', 't']);
const FALSE = new Set(['false', '0', 'off', 'no', 'n', 'f']);

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param root the schema with the definitions of local references */
export function acceptedBy(schema: unknown, root: Schema): AcceptedValues {
  const accepted: AcceptedValues = { any: false, types: new Set(), choices: [], binary: false };
  collect(schema, root, accepted, 0);
  return accepted;
}

function collect(schema: unknown, root: Schema, into: AcceptedValues, depth: number): void {
  if (!isObject(schema) || depth > DEEPEST) {
    into.any = true;
    return;
  }
  let named = false;
  for (const type of [schema.type].flat()) {
    if (typeof type !== 'string') continue;
    named = true;
    into.types.add(type);
  }
  if (schema.format === 'binary') into.binary = true;
  if (schema.items !== undefined) into.items = schema.items;
  const choices = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : [];
  into.choices.push(...choices);
  named ||= choices.length > 0;
  for (const union of UNIONS) {
    const branches = schema[union];
    if (!Array.isArray(branches)) continue;
    named = true;
    for (const branch of branches) collect(branch, root, into, depth + 1);
  }
  if (typeof schema.$ref === 'string') {
    named = true;
    collect(target(schema.$ref, root), root, into, depth + 1);
  }
  if (!named) into.any = true;
}

function target(reference: string, root: Schema): unknown {
  const [, name] = /^#\/\$defs\/([^/]+)$/.exec(reference) ?? [];
  if (name === undefined || !isObject(root.$defs)) return undefined;
  const key = name.replaceAll('~1', '/').replaceAll('~0', '~');
  return Object.hasOwn(root.$defs, key) ? root.$defs[key] : undefined;
}

/**
 * Returns the JSON text of a field's text. A text that fits no accepted type stays a string, and the check of the schema reports it.
 * Numbers keep their digits.
 */
export function jsonOfText(text: string, { any, types, choices }: AcceptedValues): string {
  const quoted = JSON.stringify(text);
  if (any || choices.includes(text)) return quoted;
  const trimmed = text.trim();
  const choice = choices.find((each) => typeof each !== 'string' && JSON.stringify(each) === trimmed);
  if (choice !== undefined) return trimmed;
  if (types.has('string')) return quoted;
  const number = types.has('integer') || types.has('number') ? NUMBER.exec(trimmed)?.[1] : undefined;
  if (number !== undefined) return number;
  if (types.has('boolean')) {
    const word = trimmed.toLowerCase();
    if (TRUE.has(word)) return 'true';
    if (FALSE.has(word)) return 'false';
  }
  if (types.has('null') && (trimmed === '' || trimmed === 'null')) return 'null';
  if (types.has('object') && isJson(trimmed, '{')) return trimmed;
  if (types.has('array') && isJson(trimmed, '[')) return trimmed;
  return quoted;
}

/** Returns whether a text is JSON that begins with a character. */
export function isJson(text: string, first: '{' | '['): boolean {
  if (!text.startsWith(first)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
