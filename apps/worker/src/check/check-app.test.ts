// Contract 7: `npm run check` on folders as authors write them, with a real interpreter.
import { expect, test } from '@jest/globals';
import { checkApp } from './check-app.ts';
import { report } from './report.ts';
import { AppFolders } from './testing/app-folders.ts';

const folders = new AppFolders();

test('the functions of an app without a manifest are reported', async () => {
  const checked = await folders.check({
    'main.py': [
      'from typing import Iterator',
      'def run(n: int, *, loud=False) -> Iterator[str]:\n    "Counts."\n    yield str(n)',
      'def _no(): pass\n',
    ].join('\n'),
  });
  expect(checked).toMatchObject({ problems: [], notes: [], startMs: expect.any(Number) });
  expect(report(checked).split('\n').slice(1)).toEqual([
    'serves run(n: int, loud = false)  Counts.',
    '  n: {"type":"integer"}',
    '  loud: {"default":false}',
    '  yields: {"type":"string"}',
    'It can be deployed.',
    '',
  ]);
});

test('a function whose schema is too large is reported as untyped, with the reason', async () => {
  const large = Array.from({ length: 70_000 }, (_, i) => `"${i}"`).join();
  const checked = await folders.check({
    'main.py': `from typing import Literal\ndef large(x: Literal[${large}]): pass\ndef small(x): pass\n`,
  });
  expect(checked.problems).toEqual([]);
  const [, ...lines] = report(checked).split('\n');
  expect(lines[1]).toMatch(
    /^note: large is untyped, so the gateway does not check its calls: .* at most 262144 bytes$/,
  );
  expect(lines.slice(2, 4)).toEqual(['serves small(x)', '  x: any value']);
});

test('the functions of an app in TypeScript are reported, with the names of their schemas', async () => {
  const checked = await folders.check({
    'main.ts': [
      '/** Counts. */',
      'export function* run({ n, loud = false }: { n: number; loud?: boolean }) { if (loud) yield n; }',
      "run.schema = { type: 'object', properties: { n: { type: 'integer' }, loud: { default: false } }, required: ['n'], additionalProperties: false };",
      'export const untyped = () => 1;',
    ].join('\n'),
  });
  expect(checked).toMatchObject({ problems: [], startMs: expect.any(Number) });
  expect(report(checked)).toContain('run(n, loud = false)  Counts.');
  expect(report(checked)).toContain('untyped(');
});

test('a package that an app in JavaScript imports and does not have is a problem', async () => {
  const checked = await folders.check({ 'main.mjs': "import 'no-such-package';\nexport const f = () => 1;" });
  expect(checked.problems).toEqual([expect.stringMatching(/does not start: .*Cannot find package 'no-such-package'/)]);
});

test('an error in TypeScript, and an engine that is absent, are problems', async () => {
  const wrong = await folders.check({ 'main.ts': "import { a } from './missing';\nexport const f = () => a;" });
  expect(wrong.problems).toEqual([expect.stringContaining('main.ts:1: Could not resolve "./missing"')]);
  const absent = await folders.check({
    'main.mjs': 'export const f = () => 1;',
    'app.toml': '[runtime.node]\nnode = "no-node"',
  });
  expect(absent.problems).toEqual([expect.stringContaining('no Node at')]);
});

test('methods of a class are served, and a method without a name of its own is a note', async () => {
  const checked = await folders.check({
    'main.py': [
      'class Predictor:',
      '    def setup(self): print("loads")',
      '    def predict(self, x: int): return x',
      '    def embed(self): return 1',
      'def embed(): return 2',
    ].join('\n'),
  });
  expect(checked).toMatchObject({
    problems: [],
    notes: ['the method Predictor.embed is not served: a function has the same name'],
  });
  expect(report(checked)).toContain('serves predict(x: int)\n');
  expect(folders.printed).toContain('loads');
});

test.each(['cerebrium.', ''])(
  'a hosted folder with sections named [%sdeployment] runs without a change',
  async (prefix) => {
    const manifest = [
      `[${prefix}deployment]\nname = "stream"\npython_version = "3.12"\ndisable_auth = true\ninclude = ["*"]`,
      `[${prefix}hardware]\ncpu = 2\nmemory = 4.0\ncompute = "CPU"\nprovider = "aws"`,
      `[${prefix}scaling]\nmin_replicas = 0\nmax_replicas = 2\nreplica_concurrency = 3\nresponse_grace_period = 60\ncooldown = 30`,
      `[${prefix}dependencies.pip]\nnumpy = "latest"`,
    ].join('\n');
    const checked = await folders.check({
      'cerebrium.toml': manifest,
      'main.py': 'def predict(prompt, run_id, temperature=0.7):\n    yield f"data: {prompt}\\n\\n"\n',
    });
    expect(checked.problems).toEqual([]);
    expect(checked.notes).toContain('deployment.disable_auth has no effect here');
    expect(checked.functions).toMatchObject([
      {
        name: 'predict',
        parameters: [{ name: 'prompt' }, { name: 'run_id' }, { name: 'temperature', required: false }],
      },
    ]);
  },
);

test('modules that a deployment installs are no problem, and the app is not started', async () => {
  const checked = await folders.check({
    'main.py': 'import no_such_a\n',
    'app.toml': '[dependencies.apt]\nffmpeg = "latest"',
    'requirements.txt': 'no-such-a\n',
  });
  expect(checked.problems).toEqual([]);
  expect(checked.startMs).toBeUndefined();
  expect(checked.notes).toEqual([
    "[dependencies.apt] is not supported (ffmpeg): system packages belong in the worker's image",
    'a deployment installs the packages of requirements.txt: install them into .venv to check the start of the app',
  ]);
  const { problems } = await folders.check({
    'main.py': '',
    'requirements.txt': '-r ../secret.txt',
    'cerebrium.toml': '[cerebrium.deployment]\nshell_commands = ["make"]',
  });
  expect(problems).toEqual([
    expect.stringMatching(/^shell_commands of the manifest: .* ALLOW_BUILD_COMMANDS=true/),
    expect.stringContaining('names "../secret.txt"'),
  ]);
});

test('a package of package.json that a deployment installs is no problem', async () => {
  const { problems, notes } = await folders.check({
    'main.mjs': "import 'no-such-package';\nexport const f = () => 1;\n",
    'package.json': '{"dependencies":{"no-such-package":"1"}}',
  });
  expect(problems).toEqual([]);
  expect(notes).toEqual([
    expect.stringMatching(/^a deployment installs the packages of package\.json: .*no-such-package/),
  ]);
});

test('all missing modules are reported together with their places', async () => {
  const { problems } = await folders.check({
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
    'an unknown key',
    { 'app.toml': '[scaling]\nmax_replica = 3', 'main.py': 'def f(): pass' },
    /^scaling\.max_replica is an unknown key$/,
  ],
  [
    'a value of the wrong form',
    { 'app.toml': '[scaling]\ntimeout = "1s"', 'main.py': '' },
    /^app\.toml: \[scaling\] timeout: /,
  ],
  ['a file that is not TOML', { 'app.toml': 'a = = 1', 'main.py': '' }, /^app\.toml: not TOML/],
  ['a syntax error', { 'main.py': 'def f(:' }, /^it does not start: SyntaxError: /],
  [
    'setup() that raises',
    { 'main.py': 'def setup():\n    raise RuntimeError("no weights")\ndef f(): pass' },
    /^it does not start: RuntimeError: .*no weights$/,
  ],
  ['no public function', { 'main.py': 'def _f(): pass' }, /^it has no public function$/],
  ['no main.py', { 'app.toml': '' }, /^it does not start: /],
  [
    'a missing interpreter',
    { 'app.toml': '[runtime.python]\npython = "no/python"', 'main.py': '' },
    /^no Python interpreter at /,
  ],
])('%s is a problem', async (_, files, problem) => {
  const { problems } = await folders.check(files);
  expect(problems).toEqual([expect.stringMatching(problem)]);
});

test('a name that no call can contain is a problem', async () => {
  const { problems } = await folders.check({ 'main.py': 'def f(): pass' }, 'runs');
  expect(problems).toEqual(["the app's folder, runs, has a name that no call could reach"]);
});

test('a path that is not a folder is a problem', async () => {
  const { problems } = await checkApp(folders.path('nothing'), folders.options);
  expect(problems).toEqual([`${folders.path('nothing')} is not a folder`]);
});

test('lines that an app prints during its start are shown', async () => {
  await folders.check({ 'main.py': 'print("loading the weights")\ndef f(): pass' });
  expect(folders.printed).toContain('loading the weights');
});

test('a missing module of a file that nothing imports is a note, and the folder can be deployed', async () => {
  const checked = await folders.check({
    'main.py': 'import helpers\nfrom package import part\ndef run(): return helpers.here\n',
    'helpers.py': 'here = 1\n',
    'package/__init__.py': '',
    'package/part.py': 'from . import sibling\n',
    'package/sibling.py': 'there = 2\n',
    'tests/test_main.py': 'import no_such_pytest\n',
    'train.py': 'import no_such_trainer\n',
  });
  expect(checked.problems).toEqual([]);
  expect(checked.notes).toEqual([
    'tests/test_main.py:1 imports no_such_pytest, which the interpreter does not have; the app starts without it',
    'train.py:1 imports no_such_trainer, which the interpreter does not have; the app starts without it',
  ]);
  expect(report(checked)).toContain('It can be deployed.');
});

test('a missing module of an imported file is a problem at any depth', async () => {
  const { problems } = await folders.check({
    'main.py': 'def run():\n    from package.part import thing\n',
    'package/__init__.py': '',
    'package/part.py': 'from .sibling import there\n',
    'package/sibling.py': 'def there():\n    import no_such_g\n',
  });
  expect(problems).toEqual(['package/sibling.py:2 imports no_such_g, which the interpreter does not have']);
});

test('an [env] value over the system’s limit is a problem that names the variable', async () => {
  const { problems } = await folders.check({
    'app.toml': `[env]\nMODEL_TEXT = "${'x'.repeat(128 * 1024)}"`,
    'main.py': 'def run(): pass\n',
  });
  expect(problems).toEqual([expect.stringContaining('MODEL_TEXT has 131072 bytes')]);
});

test('a hosted folder with [runtime.cortex] and scaling.compute_tier can be deployed', async () => {
  const checked = await folders.check({
    'cerebrium.toml': '[cerebrium.runtime.cortex]\npython_version = "3.12"\n[cerebrium.scaling]\ncompute_tier = "spot"',
    'main.py': 'def run(): pass\n',
  });
  expect(checked.problems).toEqual([]);
  expect(checked.notes).toEqual(['runtime.cortex has no effect here', 'scaling.compute_tier has no effect here']);
});
