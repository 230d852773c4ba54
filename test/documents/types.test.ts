// docs/apps/types.md: each row of its tables is a call over HTTP, without pydantic, with pydantic 1.10 and with the newest pydantic 2.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { errorOf } from '../client/http.ts';
import { pydanticEnvironments } from '../stack/pydantic.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';
import { codeBlocks, page, root, tableRows, ticked } from './markdown.ts';

const PAGE = page('docs/apps/types.md');
/** The classes that the tables use, and further classes of the table with pydantic. */
const [, , CLASSES = '', MODELS = ''] = codeBlocks(PAGE, 'python');
const HARNESS_TESTS = join(root, 'apps/worker/harness/python/tests');

interface Row {
  readonly annotation: string;
  readonly json: string;
  /** By environment. */
  readonly results: readonly (string | undefined)[];
}

const textOf = (cell = ''): string => ticked(cell)[0] ?? '';
/** A cell is a value, as Python prints it, or 422 and the types of the violations. */
const resultOf = (cell = ''): string => cell.replace(/`/g, '');

const rows: Row[] = [
  ...[/^Numbers and texts/, /^Collections and unions/, /^Times and other texts/, /^Classes/]
    .flatMap((heading) => tableRows(PAGE, heading))
    .map(([annotation, json, result]) => ({
      annotation: textOf(annotation),
      json: textOf(json),
      results: Array.from({ length: 3 }, () => resultOf(result)),
    })),
  ...tableRows(PAGE, /^Values that need pydantic/).map(([annotation, json, ...results]) => ({
    annotation: textOf(annotation),
    json: textOf(json),
    results: [undefined, ...results.map(resultOf)],
  })),
];

const environments = await pydanticEnvironments();

/** Returns an app with a function for each row. The function returns what it sees. */
function program(column: number, prelude: string): string {
  const functions = rows.map(({ annotation, results }, number) =>
    results[column] === undefined ? '' : `def f${number}(x: ${annotation}):\n    return repr(x)\n`,
  );
  return [prelude, CLASSES, ...(column === 0 ? [] : [MODELS]), ...functions].join('\n');
}

let stack: SharedStack;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'types-'));
  const apps = environments.filter(({ missing }) => missing === undefined);
  for (const { name, venv, prelude } of apps) {
    await mkdir(join(folder, name));
    await writeFile(
      join(folder, name, 'main.py'),
      program(
        environments.findIndex((one) => one.name === name),
        prelude,
      ),
    );
    if (venv !== undefined) await writeFile(join(folder, name, 'app.toml'), `[runtime.python]\nvenv = "${venv}"\n`);
  }
  stack = await joinSharedStack(
    'types',
    apps.map(({ name }) => join(folder, name)),
  );
});
afterAll(async () => {
  await stack?.leave();
  await rm(folder, { recursive: true, force: true });
});

test('the tables have rows', () => {
  expect(rows.length).toBeGreaterThan(80);
});

describe.each(environments)('$name', ({ name, venv, missing }) => {
  const column = environments.findIndex((one) => one.name === name);
  const tested = rows.flatMap(({ annotation, json, results }, number) => {
    const result = results[column];
    return result === undefined ? [] : [{ number, annotation, json, result }];
  });
  const testIf = missing === undefined ? test : test.skip;

  testIf.each(tested)('$annotation $json → $result', async ({ number, json, result }) => {
    const answer = await stack.caller.call(`${name}/f${number}`, `{"x": ${json}}`);
    if (answer.status === 200) {
      expect((JSON.parse(answer.text) as { result: string }).result).toBe(result);
      return;
    }
    expect(answer.status).toBe(422);
    const { code, details: found = [] } = errorOf(answer);
    const details = found as readonly { loc: readonly string[]; type: string }[];
    expect(code).toBe('invalid_input');
    expect(details.map(({ loc }) => loc.slice(0, 2))).toEqual(details.map(() => ['body', 'x']));
    expect(`422 ${details.map(({ type }) => type).join(', ')}`).toBe(result);
  });

  if (venv !== undefined)
    test('the harness’s own tests pass in this environment', async () => {
      const { stdout } = await promisify(execFile)(join(venv, 'bin', 'python'), [HARNESS_TESTS, 'test_pydantic_types']);
      const lines = stdout.trim().split('\n');
      expect(lines.length).toBeGreaterThan(5);
      for (const line of lines) expect(JSON.parse(line)).toMatchObject({ failure: null });
    });
});
