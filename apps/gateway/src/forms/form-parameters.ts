// Contract 1, "Body": makes the parameters of a function from the fields of a form.
import { type ErrorDetail, type FunctionSpec, ServiceError } from '@inference-proxy/contracts';
import { wrongParameters } from '../schemas/violations.ts';
import { type AcceptedValues, acceptedBy, isJson, jsonOfText } from './field-text.ts';
import type { Form, FormFile, FormValue } from './form-body.ts';

/** Parameters that are stored with the run. */
export interface FormParameters {
  /** A JSON object; with files, the form of harness/PROTOCOL.md, "Parameters with files". */
  readonly params: Buffer;
  /** The parameters for the check of the schema. A file is a string. */
  readonly value: object;
}

/** Contract 1: the most entries of `details`. */
const MOST_DETAILS = 20;
/** Marks parameters with files. JSON cannot begin with this byte. */
const FILES_MARK = Buffer.from([0]);
const LINE_END = Buffer.from('\n');

type Schema = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A file, and the parameter that receives the file. */
interface Placed {
  readonly parameter: string;
  /** The parameter is a list. */
  readonly list?: true;
  readonly name: string;
  readonly content_type: string;
  readonly bytes: number;
}

/**
 * Converts the fields as the function's schema requires.
 *
 * @param mostBytes the largest size of the parameters
 * @throws ServiceError `invalid_input` if a file has a parameter that takes no file, `payload_too_large`
 */
export function parametersOfForm({ name: fn, schema }: FunctionSpec, form: Form, mostBytes: number): FormParameters {
  const root: Schema = schema?.parameters ?? {};
  const texts: string[] = [];
  const checked: string[] = [];
  const placed: Placed[] = [];
  const contents: Buffer[] = [];
  const details: ErrorDetail[] = [];
  for (const [name, values] of form) {
    const part = partOf(root, name);
    const key = JSON.stringify(name);
    const accepted = part === undefined ? undefined : acceptedBy(part, root);
    if (!values.some((value) => typeof value !== 'string')) {
      const text = jsonOf(values as readonly string[], accepted ?? { ...ANY }, root);
      texts.push(`${key}:${text}`);
      checked.push(`${key}:${text}`);
      continue;
    }
    const list = accepted !== undefined && takesListOfFiles(accepted, root);
    if (accepted !== undefined && !list && !accepted.binary) {
      details.push({
        loc: ['body', name],
        msg: 'A file needs a parameter of type bytes or BinaryIO',
        type: 'file_type',
      });
      continue;
    }
    const files = values.map(asFile);
    for (const { name: fileName, type, bytes } of files) {
      placed.push({
        parameter: name,
        ...(list && { list }),
        name: fileName,
        content_type: type,
        bytes: bytes.length,
      });
      contents.push(bytes);
    }
    const stand = files.map(({ bytes }) => standIn(bytes, part));
    checked.push(`${key}:${list || stand.length > 1 ? `[${stand.join(',')}]` : stand[0]}`);
  }
  if (details.length > 0) throw wrongParameters(fn, details.slice(0, MOST_DETAILS));
  const value = JSON.parse(`{${checked.join(',')}}`) as object;
  const parameters = `{${texts.join(',')}}`;
  const params =
    placed.length === 0
      ? Buffer.from(parameters)
      : Buffer.concat([
          FILES_MARK,
          Buffer.from(`{"parameters":${parameters},"files":${JSON.stringify(placed)}}`),
          LINE_END,
          ...contents,
        ]);
  if (params.length > mostBytes)
    throw new ServiceError('payload_too_large', `The parameters are over ${mostBytes} bytes.`);
  return { params, value };
}

const ANY: AcceptedValues = { any: true, types: new Set(), choices: [], binary: false };

/** Returns the schema of a parameter, or undefined if the function has no such parameter. */
function partOf({ properties, additionalProperties }: Schema, name: string): unknown {
  if (isObject(properties) && Object.hasOwn(properties, name)) return properties[name];
  return additionalProperties === false ? undefined : (additionalProperties ?? {});
}

function jsonOf(values: readonly string[], accepted: AcceptedValues, root: Schema): string {
  const [only = ''] = values;
  if (accepted.types.has('array') && !(values.length === 1 && isJson(only.trim(), '['))) {
    const items = acceptedBy(accepted.items, root);
    return `[${values.map((value) => jsonOfText(value, items)).join(',')}]`;
  }
  // The check of the schema reports a doubled field as a list.
  return values.length === 1 ? jsonOfText(only, accepted) : JSON.stringify(values);
}

const takesListOfFiles = ({ types, items }: AcceptedValues, root: Schema): boolean =>
  types.has('array') && acceptedBy(items, root).binary;

const asFile = (value: FormValue): FormFile =>
  typeof value === 'string' ? { name: '', type: 'text/plain', bytes: Buffer.from(value) } : value;

/** Returns a JSON string in place of a file. Its length counts only if the schema bounds the length. */
function standIn(bytes: Buffer, part: unknown): string {
  const bounded = isObject(part) && (part.minLength !== undefined || part.maxLength !== undefined);
  return bounded ? JSON.stringify('-'.repeat(bytes.length)) : '""';
}
