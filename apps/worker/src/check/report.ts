// Contract 7: the report of `npm run check` for the app's author.
import type { FunctionSpec, ParameterSpec } from '@inference-proxy/contracts';
import type { Checked } from './check-app.ts';

export function report({ problems, notes, functions, server, startMs }: Checked): string {
  const lines = [
    ...problems.map((text) => `problem: ${text}`),
    ...notes.map((text) => `note: ${text}`),
    ...(startMs === undefined ? [] : [`starts in ${(startMs / 1000).toFixed(1)} s`]),
    ...functions.map((fn) => `serves ${signature(fn)}${fn.doc === undefined ? '' : `  ${fn.doc}`}`),
    ...(server === undefined || startMs === undefined ? [] : [`serves every path of the app with ${server}`]),
    problems.length === 0 ? 'It can be deployed.' : `It cannot be deployed: ${counted(problems.length)}.`,
  ];
  return `${lines.join('\n')}\n`;
}

const counted = (n: number): string => (n === 1 ? 'one problem' : `${n} problems`);

function signature({ name, parameters, extra }: FunctionSpec): string {
  return `${name}(${[...parameters.map(parameter), ...(extra ? ['…'] : [])].join(', ')})`;
}

function parameter({ name, required, annotation, default: value }: ParameterSpec): string {
  const typed = annotation === undefined ? name : `${name}: ${annotation}`;
  if (required) return typed;
  return `${typed} = ${value === undefined ? '…' : JSON.stringify(value)}`;
}
