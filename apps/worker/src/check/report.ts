// Contract 7: the report of `npm run check` for the app's author.
import type { FunctionSpec, ParameterSpec } from '@inference-proxy/contracts';
import type { Checked } from './check-app.ts';

export function report({ problems, notes, functions, server, startMs }: Checked): string {
  const lines = [
    ...problems.map((text) => `problem: ${text}`),
    ...notes.map((text) => `note: ${text}`),
    ...(startMs === undefined ? [] : [`starts in ${(startMs / 1000).toFixed(1)} s`]),
    ...functions.flatMap((fn) => [`serves ${signature(fn)}${fn.doc === undefined ? '' : `  ${fn.doc}`}`, ...types(fn)]),
    ...(server === undefined || startMs === undefined ? [] : [`serves every path of the app with ${server}`]),
    problems.length === 0 ? 'It can be deployed.' : `It cannot be deployed: ${counted(problems.length)}.`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Returns the schemas of a function, one line each, or why the function is untyped. */
function types({ name, schema, untyped }: FunctionSpec): string[] {
  if (untyped !== undefined) return [`note: ${name} is untyped, so the gateway does not check its calls: ${untyped}`];
  if (schema === undefined) return [];
  const { properties = {}, additionalProperties, $defs = {} } = schema.parameters as ObjectSchema;
  return [
    ...Object.entries(properties).map(([parameter, part]) => line(parameter, part)),
    ...(typeof additionalProperties === 'object' ? [line('**', additionalProperties)] : []),
    ...Object.entries($defs).map(([definition, part]) => line(`$defs/${definition}`, part)),
    ...(schema.returns === undefined ? [] : [line('returns', schema.returns)]),
    ...(schema.item === undefined ? [] : [line('yields', schema.item)]),
  ];
}

/** The schema of a function's parameters. */
interface ObjectSchema {
  readonly properties?: Readonly<Record<string, object>>;
  readonly additionalProperties?: false | object;
  readonly $defs?: Readonly<Record<string, object>>;
}

/** An empty schema accepts any value. */
const line = (name: string, schema: object): string =>
  `  ${name}: ${Object.keys(schema).length === 0 ? 'any value' : JSON.stringify(schema)}`;

const counted = (n: number): string => (n === 1 ? 'one problem' : `${n} problems`);

function signature({ name, parameters, extra }: FunctionSpec): string {
  return `${name}(${[...parameters.map(parameter), ...(extra ? ['…'] : [])].join(', ')})`;
}

function parameter({ name, required, annotation, default: value }: ParameterSpec): string {
  const typed = annotation === undefined ? name : `${name}: ${annotation}`;
  if (required) return typed;
  return `${typed} = ${value === undefined ? '…' : JSON.stringify(value)}`;
}
