// `npm run lint` rejects regular expressions that can take more than linear time (scripts/lint-expressions.mjs).
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { root } from './markdown.ts';

const lint = (...paths: string[]) =>
  promisify(execFile)(process.execPath, [join(root, 'scripts', 'lint-expressions.mjs'), ...paths], { cwd: root });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'expressions-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

test.each([
  ['cubic.ts', 'export const origin = /\\r\\norigin:[ \\t]*([^\\r\\n]*?)[ \\t]*\\r\\n/i;\n', '3rd degree polynomial'],
  ['quadratic.ts', 'class A { #path = "/".replace(/\\/+$/, ""); }\n', '2nd degree polynomial'],
  ['exponential.mjs', 'export const words = /^(\\w+\\s?)*$/;\n', 'exponential'],
  ['at-run-time.ts', 'export const at = (name: string) => new RegExp(name);\n', 'built at run time'],
  ['quadratic.py', 'import re\nEND = re.compile(r"\\s+\\Z")\n', '2nd degree polynomial'],
  ['at_run_time.py', 'import re\nfind = lambda name: re.search(name + "$", "")\n', 'built at run time'],
])('a dangerous expression in %s fails the lint and is named with its line', async (name, text, why) => {
  const path = await file(name, text);
  const line = name.endsWith('.py') ? 2 : 1;
  const refused = lint(path);
  await expect(refused).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining(`${path}:${line}: `) });
  await expect(refused).rejects.toMatchObject({ stderr: expect.stringContaining(why) });
});

test('expressions that take linear time pass the lint', async () => {
  const script = await file(
    'linear.ts',
    'export const name = /^[a-z]+(?:-[a-z]+)*$/;\nexport const half = 4 / 2 / 1;\n',
  );
  const python = await file('linear.py', 'import re\nNAME = re.compile(r"\\A[a-z]+\\Z")\n');
  expect((await lint(script, python)).stderr).toBe('');
});

test('every expression of the services passes the lint, and `npm run lint` checks them', async () => {
  expect((await lint()).stderr).toBe('');
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  expect(scripts.lint.split(' && ')).toContain('node scripts/lint-expressions.mjs');
});
