import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { includeOf, namesIn, withParts } from './script-files.ts';

const folder = new URL('./', import.meta.url);
const files = globSync('**/*.lua', { cwd: folder });
const textOf = (file: string): string => readFileSync(new URL(file, folder), 'utf8');
const includesOf = (text: string) => text.split('\n').flatMap((line) => includeOf(line) ?? []);
const namesOf = (text: string): Set<string> =>
  new Set([...text.matchAll(/^local (?:function )?(\w+(?:, \w+)*)/gm)].flatMap(([, names = '']) => names.split(', ')));
const partNames = new Map(
  files.filter((file) => file.startsWith('parts/')).map((file) => [file.slice(6, -4), namesOf(textOf(file))]),
);

test.each(files)('%s uses every name that it includes', (file) => {
  const text = textOf(file);
  const used = namesIn(text);
  const included = includesOf(text).flatMap(({ names }) => names);
  expect(included.filter((name) => !used.has(name))).toEqual([]);
  expect(included.filter((name, at) => included.indexOf(name) !== at)).toEqual([]);
});

test.each(files)('%s includes every name of a part that it uses', (file) => {
  const text = textOf(file)
    .replace(/--.*$/gm, '')
    .replace(/'[^'\n]*'/g, "''");
  const included = new Set(includesOf(textOf(file)).flatMap(({ names }) => names));
  // Locals of the file: definitions, parameters and variables of loops.
  const own = new Set(
    [...text.matchAll(/\blocal (?:function )?(\w+(?:, ?\w+)*)|\bfor (\w+(?:, ?\w+)*)|\(([\w, ]*)\)/g)].flatMap(
      ([, ...found]) => found.flatMap((names) => names?.split(/, ?/) ?? []),
    ),
  );
  const fields = new Set([...text.matchAll(/[.](\w+)|\b(\w+) =/g)].flatMap(([, field, key]) => [field, key]));
  const used = [...namesIn(text)].filter((name) => !own.has(name) && !fields.has(name));
  const missing = used.filter((name) => !included.has(name) && [...partNames.values()].some((part) => part.has(name)));
  expect(missing).toEqual([]);
});

test.each(files)('%s gives names to the arguments of a group', (file) => {
  expect(textOf(file).match(/\bARGV\[\w+ [+-].*/g) ?? []).toEqual([]);
});

test.each([...partNames])('the part %s has no definition that no file includes or uses', (part, names) => {
  const used = new Set([
    ...namesIn(textOf(`parts/${part}.lua`).replace(/^local (?:function )?(\w+(?:, \w+)*)/gm, '')),
    ...files.flatMap((file) =>
      includesOf(textOf(file)).flatMap((include) => (include.part === part ? include.names : [])),
    ),
  ]);
  expect([...names].filter((name) => !used.has(name))).toEqual([]);
});

test('a script gets the definitions that it names, after those that they use, and each once', () => {
  const parts: Record<string, string> = {
    a: '-- A.\n--@include b: two\nlocal one = two + 1\n\n-- Not used.\nlocal other = 5\n',
    b: 'local zero = 0\nlocal two = zero + 2\nlocal unused = zero\n',
  };
  const script = '#!lua\n--@include b: two\n--@include a: one\nreturn one + two';
  const text = withParts(script, (part) => parts[part] ?? '').replace(/--.*\n/g, '');
  expect(text.replace(/\n+/g, '\n')).toBe(
    '#!lua\nlocal zero = 0\nlocal two = zero + 2\nlocal one = two + 1\nreturn one + two',
  );
});

test('an include of a name that the part does not define is an error', () => {
  expect(() => withParts('--@include a: nothing', () => 'local one = 1\n')).toThrow(
    "the part 'a' does not define 'nothing'",
  );
});
