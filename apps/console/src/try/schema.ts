// JSON Schema (draft 2020-12) as a form reads it: which control a value needs. Pure.

export type Schema = Readonly<Record<string, unknown>>;

/** The controls of the form. `json`: any value, as text. */
export type Control =
  | { readonly kind: 'text' | 'date' | 'number' | 'boolean' | 'file' | 'files' | 'json' | 'null' }
  | { readonly kind: 'choice'; readonly values: readonly unknown[] }
  | {
      readonly kind: 'object';
      readonly properties: Readonly<Record<string, Schema>>;
      readonly required: ReadonlySet<string>;
    }
  | { readonly kind: 'list'; readonly items: Schema }
  | { readonly kind: 'union'; readonly branches: readonly Schema[] };

/** What the form shows of a value. */
export interface FieldShape {
  readonly control: Control;
  readonly nullable: boolean;
  readonly title: string | undefined;
  readonly description: string | undefined;
  /** The default as JSON text. */
  readonly defaultText: string | undefined;
  /** Limits in words, such as `at least 1`. */
  readonly limits: string;
}

/** A longer path of references is a circle. */
const DEEPEST = 16;

export const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Follows `$ref`. Keywords beside a reference win. */
export function resolved(schema: unknown, root: Schema, depth = 0): Schema {
  if (!isSchema(schema)) return {};
  const { $ref: reference, ...beside } = schema;
  if (typeof reference !== 'string' || depth > DEEPEST) return schema;
  const [, name = ''] = /^#\/\$defs\/([^/]+)$/.exec(reference) ?? [];
  const key = name.replaceAll('~1', '/').replaceAll('~0', '~');
  const definitions = isSchema(root.$defs) ? root.$defs : {};
  const target = Object.hasOwn(definitions, key) ? definitions[key] : {};
  return { ...resolved(target, root, depth + 1), ...beside };
}

const isNull = ({ type, const: only, enum: values }: Schema): boolean =>
  type === 'null' || only === null || (Array.isArray(values) && values.length === 1 && values[0] === null);

/** Returns the branches of a schema: the members of a union, or one branch for each type. */
function branchesOf(schema: Schema, root: Schema): readonly Schema[] {
  const { anyOf, oneOf, allOf, type, ...rest } = schema;
  if (Array.isArray(allOf) && allOf.length === 1) return branchesOf({ ...resolved(allOf[0], root), ...rest }, root);
  const union = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined;
  if (union !== undefined) return union.flatMap((branch) => branchesOf(resolved(branch, root), root));
  if (Array.isArray(type)) return type.map((each: unknown) => ({ ...rest, type: each }));
  return [schema];
}

function controlOf(schema: Schema, root: Schema): Control {
  const { type, format, enum: values, properties, items, prefixItems, required } = schema;
  if ('const' in schema) return { kind: 'choice', values: [schema.const] };
  if (Array.isArray(values)) return { kind: 'choice', values };
  if (type === 'string') return { kind: format === 'binary' ? 'file' : format === 'date' ? 'date' : 'text' };
  if (type === 'integer' || type === 'number') return { kind: 'number' };
  if (type === 'boolean') return { kind: 'boolean' };
  if (type === 'null') return { kind: 'null' };
  if (type === 'array' && isSchema(items) && prefixItems === undefined) {
    const each = resolved(items, root);
    return each.format === 'binary' ? { kind: 'files' } : { kind: 'list', items: each };
  }
  if (isSchema(properties)) {
    const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
    return { kind: 'object', properties: properties as Record<string, Schema>, required: new Set(names) };
  }
  return { kind: 'json' };
}

const LIMITS: readonly (readonly [keyword: string, words: string])[] = [
  ['minimum', 'at least'],
  ['exclusiveMinimum', 'more than'],
  ['maximum', 'at most'],
  ['exclusiveMaximum', 'less than'],
  ['multipleOf', 'a multiple of'],
  ['minLength', 'characters at least'],
  ['maxLength', 'characters at most'],
  ['minItems', 'items at least'],
  ['maxItems', 'items at most'],
  ['pattern', 'matches'],
  ['format', 'format'],
];

function limitsOf(schema: Schema): string {
  const words = LIMITS.filter(([keyword]) => schema[keyword] !== undefined && schema[keyword] !== 'binary').map(
    ([keyword, text]) => `${text} ${schema[keyword]}`,
  );
  return [schema.type === 'integer' ? 'whole number' : '', ...words].filter(Boolean).join(', ');
}

const word = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Returns what the form shows for a schema. @param root the schema with the definitions of references */
export function shapeOf(given: Schema, root: Schema): FieldShape {
  const schema = resolved(given, root);
  const all = branchesOf(schema, root);
  const branches = all.filter((branch) => !isNull(branch));
  const [only] = branches;
  const control: Control =
    branches.length > 1 ? { kind: 'union', branches } : only === undefined ? { kind: 'null' } : controlOf(only, root);
  return {
    control,
    nullable: branches.length < all.length,
    title: word(schema.title),
    description: word(schema.description),
    defaultText: 'default' in schema ? JSON.stringify(schema.default) : undefined,
    limits: branches.length > 1 || only === undefined ? '' : limitsOf(only),
  };
}

/** Returns the name of a branch of a union. */
export function branchName(branch: Schema): string {
  if (typeof branch.title === 'string') return branch.title;
  if ('const' in branch) return JSON.stringify(branch.const);
  if (Array.isArray(branch.enum)) return branch.enum.map((value) => JSON.stringify(value)).join(' or ');
  return word(branch.type) ?? 'any value';
}

/** Returns whether a value has the JSON type of a branch. The form opens the branch of a given value. */
export function fits(value: unknown, branch: Schema): boolean {
  if ('const' in branch) return JSON.stringify(branch.const) === JSON.stringify(value);
  if (Array.isArray(branch.enum)) return branch.enum.some((each) => JSON.stringify(each) === JSON.stringify(value));
  if (branch.type === 'integer') return Number.isInteger(value);
  if (Array.isArray(value)) return branch.type === 'array';
  return branch.type === undefined || branch.type === typeof value;
}

/** Returns the value with which a form begins: required objects and lists are open, everything else is absent. */
export function initialOf(given: Schema, root: Schema): unknown {
  const { control } = shapeOf(given, root);
  if (control.kind === 'list') return [];
  if (control.kind === 'choice' && control.values.length === 1) return control.values[0];
  if (control.kind !== 'object') return undefined;
  const names = Object.keys(control.properties).filter((name) => control.required.has(name));
  return Object.fromEntries(names.map((name) => [name, initialOf(control.properties[name] as Schema, root)]));
}
