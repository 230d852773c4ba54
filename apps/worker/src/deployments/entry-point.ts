// Contract 7: the entry point of an app whose manifest names none: `main.py`, or the file that makes the folder an app in JavaScript.
import { readFile, stat } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { NODE_ENTRYPOINTS, PYTHON_ENTRYPOINT } from '@inference-proxy/contracts';
import { asTable } from './manifest-text.ts';

export type Language = 'python' | 'node';

export interface EntryPoint {
  readonly language: Language;
  /** Relative to the app's folder. */
  readonly file: string;
}

/** Conditions of `exports` in `package.json` that apply, as Node orders them. */
const CONDITIONS = ['node', 'import', 'module-sync', 'default', 'require'];

/** Returns the entry point of a folder, or undefined if the folder has none. `main.py` wins over every other file. */
export async function findEntryPoint(folder: string): Promise<EntryPoint | undefined> {
  if (await isFile(join(folder, PYTHON_ENTRYPOINT))) return { language: 'python', file: PYTHON_ENTRYPOINT };
  const file = await nodeEntryPoint(folder);
  return file === undefined ? undefined : { language: 'node', file };
}

/** Returns the entry point that `package.json` names, else the first of `NODE_ENTRYPOINTS`. */
export async function nodeEntryPoint(folder: string): Promise<string | undefined> {
  for (const file of [await packageEntry(folder), ...NODE_ENTRYPOINTS])
    if (file !== undefined && (await isFile(join(folder, file)))) return file;
  return undefined;
}

async function packageEntry(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '');
  const named = entryNamed(text);
  if (named === undefined) return undefined;
  const file = normalize(named);
  return file.startsWith('..') || file.startsWith('/') ? undefined : file;
}

/** Returns the path in `exports`, else in `main`. Reads the forms of `exports` that have one entry point. */
function entryNamed(text: string): string | undefined {
  try {
    const { exports, main } = asTable(JSON.parse(text)) ?? {};
    return targetOf(exports) ?? (typeof main === 'string' ? main : undefined);
  } catch {
    return undefined; // Node reports the wrong text when it loads the app
  }
}

function targetOf(exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports;
  const table = asTable(exports);
  if (table === undefined) return undefined;
  const inner =
    '.' in table ? table['.'] : CONDITIONS.map((name) => table[name]).find((target) => target !== undefined);
  return inner === undefined ? undefined : targetOf(inner);
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
