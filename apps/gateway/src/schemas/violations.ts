// Contract 1, "Parameters and types": Ajv's errors as `details`. Types and messages are those of pydantic 2, which the function's
// process also uses, so that a caller sees no difference between the two judges.
import { type ErrorDetail, ServiceError } from '@inference-proxy/contracts';
import type { ErrorObject } from 'ajv';

const MOST_DETAILS = 20;
/** The caller controls the lengths of names. */
const LONGEST_NAME = 200;
const LONGEST_MESSAGE = 200;
const LONGEST_CHOICES = 500;

type TypeAndMessage = readonly [type: string, msg: string];

const TYPES: Readonly<Record<string, TypeAndMessage>> = {
  string: ['string_type', 'Input should be a valid string'],
  integer: ['int_type', 'Input should be a valid integer'],
  number: ['float_type', 'Input should be a valid number'],
  boolean: ['bool_type', 'Input should be a valid boolean'],
  array: ['list_type', 'Input should be a valid list'],
  object: ['dict_type', 'Input should be a valid object'],
  null: ['none_required', 'Input should be null'],
};

const FORMATS: Readonly<Record<string, TypeAndMessage>> = {
  date: ['date_parsing', 'Input should be a valid date'],
  time: ['time_parsing', 'Input should be a valid time'],
  'date-time': ['datetime_parsing', 'Input should be a valid datetime'],
  duration: ['time_delta_parsing', 'Input should be a valid duration'],
  uuid: ['uuid_parsing', 'Input should be a valid UUID'],
  decimal: ['decimal_parsing', 'Input should be a valid decimal'],
};

const UNION: TypeAndMessage = ['union_type', 'Input should match one of the allowed types'];

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

function choices(values: readonly unknown[]): string {
  const texts = values.map((value) => JSON.stringify(value));
  const last = texts.pop() ?? '';
  return (texts.length === 0 ? last : `${texts.join(', ')} or ${last}`).slice(0, LONGEST_CHOICES);
}

function wrongType({ schema, data }: ErrorObject): TypeAndMessage {
  const types = Array.isArray(schema) ? schema : [schema];
  if (types.length !== 1) return UNION;
  if (types[0] === 'integer' && typeof data === 'number')
    return ['int_from_float', 'Input should be a valid integer, got a number with a fractional part'];
  return TYPES[types[0]] ?? UNION;
}

/** By keyword. `limit` is the keyword's value. */
const DETAILS: Readonly<Record<string, (error: ErrorObject, limit: never) => TypeAndMessage>> = {
  type: wrongType,
  required: () => ['missing', 'Field required'],
  additionalProperties: ({ instancePath }) =>
    instancePath === ''
      ? ['unexpected', 'Unexpected parameter']
      : ['extra_forbidden', 'Extra inputs are not permitted'],
  enum: (_, values: readonly unknown[]) => ['enum', `Input should be ${choices(values)}`],
  const: (_, value: unknown) => ['enum', `Input should be ${choices([value])}`],
  minimum: (_, limit: number) => ['greater_than_equal', `Input should be greater than or equal to ${limit}`],
  exclusiveMinimum: (_, limit: number) => ['greater_than', `Input should be greater than ${limit}`],
  maximum: (_, limit: number) => ['less_than_equal', `Input should be less than or equal to ${limit}`],
  exclusiveMaximum: (_, limit: number) => ['less_than', `Input should be less than ${limit}`],
  multipleOf: (_, step: number) => ['multiple_of', `Input should be a multiple of ${step}`],
  minLength: (_, limit: number) => ['string_too_short', `String should have at least ${counted(limit, 'character')}`],
  maxLength: (_, limit: number) => ['string_too_long', `String should have at most ${counted(limit, 'character')}`],
  pattern: (_, pattern: string) => ['string_pattern_mismatch', `String should match pattern '${pattern}'`],
  minItems: (_, limit: number) => ['too_short', `Input should have at least ${counted(limit, 'item')}`],
  maxItems: (_, limit: number) => ['too_long', `Input should have at most ${counted(limit, 'item')}`],
  minProperties: (_, limit: number) => ['too_short', `Input should have at least ${counted(limit, 'item')}`],
  maxProperties: (_, limit: number) => ['too_long', `Input should have at most ${counted(limit, 'item')}`],
  format: ({ schema }) => FORMATS[schema as string] ?? ['value_error', 'Input has another format'],
  anyOf: () => UNION,
};

/**
 * Returns the violations, at most 20, in the order of the body's schema.
 *
 * @param errors Ajv's errors of one check, with `verbose`
 * @param params the checked value
 */
export function violations(errors: readonly ErrorObject[], params: object): ErrorDetail[] {
  const details = new Map<string, ErrorDetail>();
  for (const error of withoutDoubles(ofUnions(errors))) {
    const detail = detailOf(error, params);
    details.set(JSON.stringify([detail.loc, detail.type, detail.msg]), detail);
    if (details.size === MOST_DETAILS) break;
  }
  return [...details.values()];
}

/** Returns the error of a call with these violations. */
export function wrongParameters(fn: string, details: readonly ErrorDetail[]): ServiceError {
  const names = details.map(({ loc, type }) => `${loc.slice(1).join('.')} (${type})`).join(', ');
  const message = `wrong parameters for ${fn}: ${names}`.slice(0, LONGEST_MESSAGE);
  return new ServiceError('invalid_input', message, { details });
}

function detailOf(error: ErrorObject, params: object): ErrorDetail {
  const { keyword, schema, params: more } = error;
  const detail = DETAILS[keyword] as ((error: ErrorObject, limit: unknown) => TypeAndMessage) | undefined;
  const [type, msg] = detail?.(error, schema) ?? ['value_error', error.message ?? 'Input is not allowed'];
  const name: unknown = keyword === 'required' ? more.missingProperty : more.additionalProperty;
  const loc = ['body', ...place(error.instancePath, params)];
  return { loc: typeof name === 'string' ? [...loc, name.slice(0, LONGEST_NAME)] : loc, msg, type };
}

/** Returns the names and indexes of a JSON pointer (RFC 6901). Only the value shows whether `0` is an index. */
function place(pointer: string, value: unknown): (string | number)[] {
  let at: unknown = value;
  return pointer
    .split('/')
    .slice(1)
    .map((step) => {
      const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
      const isIndex = Array.isArray(at);
      at = (at as Record<string, unknown> | undefined)?.[name];
      return isIndex ? Number(name) : name.slice(0, LONGEST_NAME);
    });
}

const isWithin = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`);

/**
 * Replaces the errors of a union's branches by the errors that help the caller: those of the branches whose type fits the value.
 * If no branch fits, and one branch beside `null` exists, its errors count. Otherwise the union has one error.
 */
function ofUnions(errors: readonly ErrorObject[]): ErrorObject[] {
  const found: ErrorObject[] = [];
  for (const error of errors) {
    if (error.keyword !== 'anyOf') {
      found.push(error);
      continue;
    }
    // Ajv reports the branches immediately before the union.
    let from = found.length;
    while (from > 0 && isBranchOf(found[from - 1] as ErrorObject, error)) from--;
    found.push(...ofUnion(error, found.splice(from)));
  }
  return found;
}

const isBranchOf = (one: ErrorObject, union: ErrorObject): boolean =>
  isWithin(one.instancePath, union.instancePath) && one.schemaPath.startsWith(`${union.schemaPath}/`);

function ofUnion(union: ErrorObject, errors: readonly ErrorObject[]): ErrorObject[] {
  const branches = Map.groupBy(
    errors,
    ({ schemaPath }) => schemaPath.slice(union.schemaPath.length + 1).split('/', 1)[0],
  );
  const isOfType = (branch: readonly ErrorObject[]): boolean =>
    !branch.some(({ keyword, instancePath }) => keyword === 'type' && instancePath === union.instancePath);
  const fitting = [...branches.values()].filter(isOfType);
  if (fitting.length > 0) return fitting.flat();
  const others = (union.schema as readonly unknown[]).flatMap((branch, at) => (isNull(branch) ? [] : [String(at)]));
  const [only, ...more] = others;
  return (more.length === 0 && only !== undefined && branches.get(only)) || [union];
}

const isNull = (schema: unknown): boolean =>
  typeof schema === 'object' && schema !== null && 'type' in schema && schema.type === 'null';

/** A value that is no member of an enumeration needs no second error for its type. */
function withoutDoubles(errors: readonly ErrorObject[]): ErrorObject[] {
  const chosen = new Set(
    errors.flatMap(({ keyword, instancePath }) => (keyword === 'enum' || keyword === 'const' ? [instancePath] : [])),
  );
  return errors.filter(({ keyword, instancePath }) => keyword !== 'type' || !chosen.has(instancePath));
}
