// `npm run check`: folders as their authors have them, on a real interpreter.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Checked, checkApp } from './check-app.ts';
import { report } from './report.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'check-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

let made = 0;
/** An app's folder with these files. */
async function folder(files: Record<string, string>, name = `app-${++made}`): Promise<string> {
  const path = join(root, 'demo', name);
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, file)), { recursive: true });
    await writeFile(join(path, file), text);
  }
  return path;
}

const printed: string[] = [];
const check = async (files: Record<string, string>, name?: string): Promise<Checked> =>
  checkApp(await folder(files, name), {
    maxItemBytes: 1e6,
    maxOutputBytes: 1e6,
    maxLogBytes: 1e5,
    environment: process.env,
    printed: (line) => printed.push(line),
  });

test('an app without a manifest says what it would serve', async () => {
  const checked = await check({
    'main.py': 'def run(n: int, *, loud=False):\n    "Counts."\n    yield n\ndef _no(): pass\n',
  });
  expect(checked).toMatchObject({ problems: [], notes: [], startMs: expect.any(Number) });
  expect(report(checked)).toMatch(
    /^starts in \d+\.\d s\nserves run\(n: int, loud = false\) {2}Counts\.\nIt can be deployed\.\n$/,
  );
});

test.each(['cerebrium.', ''])('a hosted folder with sections named [%sdeployment] runs as it is', async (prefix) => {
  const manifest = [
    `[${prefix}deployment]\nname = "stream"\npython_version = "3.12"\ndisable_auth = true\ninclude = ["*"]`,
    `[${prefix}hardware]\ncpu = 2\nmemory = 4.0\ncompute = "CPU"\nprovider = "aws"`,
    `[${prefix}scaling]\nmin_replicas = 0\nmax_replicas = 2\nreplica_concurrency = 3\nresponse_grace_period = 60\ncooldown = 30`,
    `[${prefix}dependencies.pip]\nnumpy = "latest"`,
  ].join('\n');
  const checked = await check({
    'cerebrium.toml': manifest,
    'main.py': 'def predict(prompt, run_id, temperature=0.7):\n    yield f"data: {prompt}\\n\\n"\n',
  });
  expect(checked.problems).toEqual([]);
  expect(checked.notes).toContain('deployment.disable_auth has no effect here');
  expect(checked.functions).toMatchObject([
    { name: 'predict', parameters: [{ name: 'prompt' }, { name: 'run_id' }, { name: 'temperature', required: false }] },
  ]);
});

test('modules that are missing are named all at once, with their place', async () => {
  const { problems } = await check({
    'main.py': [
      'import json, no_such_a.part',
      'from no_such_b import thing',
      'from helpers import here',
      'try:\n    import no_such_c\nexcept ImportError:\n    no_such_c = None',
      'def run():\n    import no_such_d',
    ].join('\n'),
    'helpers.py': 'here = 1\n',
    '.venv/lib/x.py': 'import no_such_e\n',
  });
  expect(problems).toEqual([
    'main.py:1 imports no_such_a, which the interpreter does not have',
    'main.py:2 imports no_such_b, which the interpreter does not have',
    'main.py:9 imports no_such_d, which the interpreter does not have',
  ]);
});

test.each([
  [
    'a key nobody knows',
    { 'app.toml': '[scaling]\nmax_replica = 3', 'main.py': 'def f(): pass' },
    /^scaling\.max_replica is a key that nobody knows$/,
  ],
  [
    'a value of the wrong form',
    { 'app.toml': '[scaling]\ntimeout = "1s"', 'main.py': '' },
    /^app\.toml: \[scaling\] timeout: /,
  ],
  ['no TOML', { 'app.toml': 'a = = 1', 'main.py': '' }, /^app\.toml: not TOML/],
  ['a syntax error', { 'main.py': 'def f(:' }, /^it does not start: SyntaxError: /],
  [
    'setup() that raises',
    { 'main.py': 'def setup():\n    raise RuntimeError("no weights")\ndef f(): pass' },
    /^it does not start: RuntimeError: .*no weights$/,
  ],
  ['nothing to call', { 'main.py': 'def _f(): pass' }, /^it has no public function$/],
  ['no module', { 'app.toml': '' }, /^it does not start: /],
  [
    'an interpreter that is not there',
    { 'app.toml': '[runtime.python]\npython = "no/python"', 'main.py': '' },
    /^no Python interpreter at /,
  ],
])('%s is a problem', async (_, files, problem) => {
  const { problems } = await check(files);
  expect(problems).toEqual([expect.stringMatching(problem)]);
});

test('a name that no call could reach is a problem', async () => {
  const { problems } = await check({ 'main.py': 'def f(): pass' }, 'runs');
  expect(problems).toEqual(["the app's folder, runs, has a name that no call could reach"]);
});

test('what is no folder is said so', async () => {
  const options = { maxItemBytes: 1, maxOutputBytes: 1, maxLogBytes: 1, environment: {}, printed: () => {} };
  const { problems } = await checkApp(join(root, 'demo', 'nothing'), options);
  expect(problems).toEqual([`${join(root, 'demo', 'nothing')} is not a folder`]);
});

test('what an app prints while it starts is shown', async () => {
  await check({ 'main.py': 'print("loading the weights")\ndef f(): pass' });
  expect(printed).toContain('loading the weights');
});
