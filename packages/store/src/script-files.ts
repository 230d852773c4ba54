// The store's Lua scripts as texts for Redis. `--@include <part>: <names>` includes definitions of `parts/<part>.lua`, and the definitions that
// they use. Redis executes the whole text at each call, so a script gets no definition that it does not use.
import { readFileSync } from 'node:fs';
import { withKeys } from './keys.ts';

/** The scripts and their folders. The header of each file documents its keys, arguments and return codes. */
const FOLDERS = {
  accept: 'runs',
  cancel: 'runs',
  detach: 'runs',
  follow: 'runs',
  unfollow: 'runs',
  attend: 'runs',
  list: 'runs',
  result: 'runs',
  reap: 'maintenance',
  sweep: 'maintenance',
  'forget-project': 'maintenance',
  'app-counts': 'registry',
  stats: 'stats',
  take: 'workers',
  append: 'workers',
  head: 'workers',
  reserve: 'workers',
  end: 'workers',
  renew: 'workers',
  log: 'workers',
  'delivery-begin': 'deliveries',
  'delivery-record': 'deliveries',
  'delivery-redeliver': 'deliveries',
  hosts: 'hosts',
  'host-look': 'hosts',
  'version-deploy': 'versions',
  'version-activate': 'versions',
  'version-report': 'versions',
  'roll-outs': 'versions',
  'app-delete': 'versions',
  'versions-trim': 'versions',
  'secret-reseal': 'versions',
  ready: '.',
} as const;

export type ScriptName = keyof typeof FOLDERS;

export const scriptNames = Object.keys(FOLDERS) as ScriptName[];

/** Lua files are read from `src`, also by the compiled code. */
const folder = new URL('../src/', import.meta.url);
const fileOf = (path: string): string => readFileSync(new URL(path, folder), 'utf8');

/** Returns a script with the definitions that it includes. */
export function scriptSource(name: ScriptName): string {
  return withParts(fileOf(`${FOLDERS[name]}/${name}.lua`), (part) => fileOf(`parts/${part}.lua`));
}

/** Returns a script's text for Redis: its first line (flags), then the keys, then the other lines without comments. */
export function scriptText(source: string): string {
  const [flags, ...lines] = source.split('\n');
  return `${flags}\n${withKeys(lines.filter((line) => !/^\s*--/.test(line)).join('\n'))}`;
}

/** A definition: `local` at the start of a line, up to the next. */
interface Definition {
  readonly names: readonly string[];
  readonly text: string;
  readonly uses: ReadonlySet<string>;
}

interface Part {
  readonly definitions: readonly Definition[];
  readonly includes: readonly Include[];
}

export interface Include {
  readonly part: string;
  readonly names: readonly string[];
}

const INCLUDE = /^--@include (\S+): (.+)$/;

/** Returns the include of a line, if the line is one. */
export function includeOf(line: string): Include | undefined {
  const [, part, names] = INCLUDE.exec(line) ?? [];
  return part === undefined || names === undefined ? undefined : { part, names: names.split(', ') };
}

/** Returns the names in a piece of Lua, without those in comments. */
export const namesIn = (lua: string): ReadonlySet<string> =>
  new Set(lua.replace(/--.*$/gm, '').match(/\b[A-Za-z_]\w*\b/g) ?? []);

/** @param read returns the text of a part */
export function withParts(script: string, read: (part: string) => string): string {
  const parts = new Map<string, Part>();
  const written = new Set<Definition>();
  const partOf = (name: string): Part => {
    let part = parts.get(name);
    if (part === undefined) {
      part = parsed(read(name));
      parts.set(name, part);
    }
    return part;
  };
  /** Returns a definition with its dependencies before it. Returns nothing if the script contains the definition. */
  const definition = (partName: string, name: string): string => {
    const part = partOf(partName);
    const found = part.definitions.find(({ names }) => names.includes(name));
    if (!found) throw new Error(`the part '${partName}' does not define '${name}'`);
    if (written.has(found)) return '';
    written.add(found);
    const own = part.definitions.flatMap(({ names }) => names).filter((used) => found.uses.has(used));
    const others = part.includes.flatMap((include) =>
      include.names.filter((used) => found.uses.has(used)).map((used) => definition(include.part, used)),
    );
    return [...others, ...own.map((used) => definition(partName, used)), found.text].join('');
  };
  return script
    .split('\n')
    .map((line) => {
      const include = includeOf(line);
      return include ? include.names.map((name) => definition(include.part, name)).join('') : line;
    })
    .join('\n');
}

function parsed(text: string): Part {
  const pieces = text.split(/^(?=local )/m).filter((piece) => piece.startsWith('local '));
  return {
    includes: text.split('\n').flatMap((line) => includeOf(line) ?? []),
    definitions: pieces.map((piece) => ({
      names: /^local (?:function )?(\w+(?:, \w+)*)/.exec(piece)?.[1]?.split(', ') ?? [],
      text: piece,
      uses: namesIn(piece),
    })),
  };
}
