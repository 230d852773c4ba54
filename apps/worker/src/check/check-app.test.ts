// Contract 7: `npm run check` on folders as authors write them, with a real interpreter.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { obtainFastApi } from '@inference-proxy/test/fastapi';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freePort } from '../runtimes/http-server/ports.ts';
import { type Checked, type CheckOptions, checkApp } from './check-app.ts';
import { report } from './report.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'check-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

let made = 0;
/** Creates an app's folder with these files. */
async function folder(files: Record<string, string>, name = `app-${++made}`): Promise<string> {
  const path = join(root, 'demo', name);
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, file)), { recursive: true });
    await writeFile(join(path, file), text, { mode: 0o755 });
  }
  return path;
}

const printed: string[] = [];
const OPTIONS: CheckOptions = {
  maxItemBytes: 1e6,
  maxOutputBytes: 1e6,
  maxLogBytes: 1e5,
  allowCommands: false,
  environment: process.env,
  printed: (line) => printed.push(line),
};
const check = async (files: Record<string, string>, name?: string): Promise<Checked> =>
  checkApp(await folder(files, name), OPTIONS);

test('the functions of an app without a manifest are reported', async () => {
  const checked = await check({
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
  const checked = await check({
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
  const checked = await check({
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
  const checked = await check({ 'main.mjs': "import 'no-such-package';\nexport const f = () => 1;" });
  expect(checked.problems).toEqual([expect.stringMatching(/does not start: .*Cannot find package 'no-such-package'/)]);
});

test('an error in TypeScript, and an engine that is absent, are problems', async () => {
  const wrong = await check({ 'main.ts': "import { a } from './missing';\nexport const f = () => a;" });
  expect(wrong.problems).toEqual([expect.stringContaining('main.ts:1: Could not resolve "./missing"')]);
  const absent = await check({
    'main.mjs': 'export const f = () => 1;',
    'app.toml': '[runtime.node]\nnode = "no-node"',
  });
  expect(absent.problems).toEqual([expect.stringContaining('no Node at')]);
});

test('methods of a class are served, and a method without a name of its own is a note', async () => {
  const checked = await check({
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
  expect(printed).toContain('loads');
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
    const checked = await check({
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
  const checked = await check({
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
  const { problems } = await check({
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
  const { problems, notes } = await check({
    'main.mjs': "import 'no-such-package';\nexport const f = () => 1;\n",
    'package.json': '{"dependencies":{"no-such-package":"1"}}',
  });
  expect(problems).toEqual([]);
  expect(notes).toEqual([
    expect.stringMatching(/^a deployment installs the packages of package\.json: .*no-such-package/),
  ]);
});

test('all missing modules are reported together with their places', async () => {
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
  const { problems } = await check(files);
  expect(problems).toEqual([expect.stringMatching(problem)]);
});

test('a name that no call can contain is a problem', async () => {
  const { problems } = await check({ 'main.py': 'def f(): pass' }, 'runs');
  expect(problems).toEqual(["the app's folder, runs, has a name that no call could reach"]);
});

test('a path that is not a folder is a problem', async () => {
  const { problems } = await checkApp(join(root, 'demo', 'nothing'), OPTIONS);
  expect(problems).toEqual([`${join(root, 'demo', 'nothing')} is not a folder`]);
});

test('lines that an app prints during its start are shown', async () => {
  await check({ 'main.py': 'print("loading the weights")\ndef f(): pass' });
  expect(printed).toContain('loading the weights');
});

const SERVER = [
  'import { createServer } from "node:http";',
  'console.log("warming up");',
  'createServer((_, response) => response.end()).listen(process.env.PORT ?? 0);',
].join('\n');

test('an app that is a web server is reported as a server', async () => {
  const checked = await check({
    'app.toml': '[runtime.custom]\nentrypoint = "node server.mjs"\nreadycheck_endpoint = "/"',
    'server.mjs': SERVER,
  });
  expect(checked).toMatchObject({ problems: [], notes: [], functions: [], server: 'node server.mjs' });
  expect(report(checked)).toMatch(
    /^starts in \d+\.\d s\nserves every path of the app with node server\.mjs\nIt can be deployed\.\n$/,
  );
  expect(printed).toContain('warming up');
});

test('a hosted folder with a FastAPI server runs without a change, and a note names the costs of its port', async () => {
  const { python, env } = await obtainFastApi();
  const port = await freePort();
  const { problems, notes, startMs } = await check({
    'cerebrium.toml': [
      '[cerebrium.deployment]\nname = "mine"\npython_version = "3.11"',
      `[cerebrium.runtime.custom]\nport = ${port}\nhealthcheck_endpoint = "/health"\nreadycheck_endpoint = "/ready"`,
      `entrypoint = ["${python}", "-m", "uvicorn", "main:app", "--host", "0.0.0.0", "--port", "${port}"]`,
      '[cerebrium.scaling]\nmin_replicas = 1\nreplica_concurrency = 10\nresponse_grace_period = 120',
      `[env]\n${Object.entries(env).map(([name, value]) => `${name} = "${value}"`)}`,
    ].join('\n'),
    'main.py': [
      'from fastapi import FastAPI\napp = FastAPI()',
      '@app.get("/health")\ndef health(): return "OK"',
      '@app.get("/ready")\ndef ready(): return "OK"',
    ].join('\n'),
  });
  expect(problems).toEqual([]);
  expect(startMs).toEqual(expect.any(Number));
  expect(notes).toEqual([
    'deployment.name has no effect here',
    'deployment.python_version has no effect here',
    expect.stringMatching(
      `^a server with the fixed port ${port} has one replica .* \\{port\\} in its place in entrypoint`,
    ),
  ]);
});

test.each([
  ['a missing program', 'entrypoint = "no-such-server"', /^there is no program no-such-server on the PATH$/],
  [
    'a server that exits',
    'entrypoint = ["python3", "-c", "import sys; sys.exit(\'no weights\')"]',
    /code 1: no weights$/,
  ],
  [
    'a server that never listens',
    'entrypoint = "sleep 60"\n[scaling]\nstartup_timeout = 1',
    /^it does not start: NotReady: .* within 1 s: it takes no/,
  ],
  [
    'a server with a url that does not answer',
    'url = "http://127.0.0.1:1"\n[scaling]\nstartup_timeout = 2',
    /^it does not start: .* ECONNREFUSED/,
  ],
  [
    'both runtimes together',
    'entrypoint = "a"\n[runtime.python]',
    /^app\.toml: \[runtime\.custom\] and \[runtime\.python\]/,
  ],
])('for a web server, %s is a problem', async (_, section, problem) => {
  const { problems } = await check({ 'app.toml': `[runtime.custom]\n${section}` });
  expect(problems).toEqual([expect.stringMatching(problem)]);
});

test('missing modules of a server in Python are reported', async () => {
  const { problems } = await check({
    'app.toml': '[runtime.custom]\nentrypoint = ["./serve", "--port", "{port}"]',
    serve: '#!/usr/bin/env python3\nimport main\n',
    'main.py': 'import no_such_f\n',
  });
  expect(problems).toEqual([expect.stringMatching(/^main\.py:1 imports no_such_f/)]);
});

test('a missing module of a file that nothing imports is a note, and the folder can be deployed', async () => {
  const checked = await check({
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
  const { problems } = await check({
    'main.py': 'def run():\n    from package.part import thing\n',
    'package/__init__.py': '',
    'package/part.py': 'from .sibling import there\n',
    'package/sibling.py': 'def there():\n    import no_such_g\n',
  });
  expect(problems).toEqual(['package/sibling.py:2 imports no_such_g, which the interpreter does not have']);
});

test('an [env] value over the system’s limit is a problem that names the variable', async () => {
  const { problems } = await check({
    'app.toml': `[env]\nMODEL_TEXT = "${'x'.repeat(128 * 1024)}"`,
    'main.py': 'def run(): pass\n',
  });
  expect(problems).toEqual([expect.stringContaining('MODEL_TEXT has 131072 bytes')]);
});

test('a hosted folder with [runtime.cortex] and scaling.compute_tier can be deployed', async () => {
  const checked = await check({
    'cerebrium.toml': '[cerebrium.runtime.cortex]\npython_version = "3.12"\n[cerebrium.scaling]\ncompute_tier = "spot"',
    'main.py': 'def run(): pass\n',
  });
  expect(checked.problems).toEqual([]);
  expect(checked.notes).toEqual(['runtime.cortex has no effect here', 'scaling.compute_tier has no effect here']);
});

const PORTED = SERVER.replace('process.env.PORT ?? 0', 'process.argv.at(-1)');

/** Starts a process in a folder that listens on a port. */
async function listener(cwd: string, port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [join(cwd, 'server.mjs'), String(port)], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  while ((await connected(port)) === false) await new Promise((resolve) => setTimeout(resolve, 10));
  return child;
}

const connected = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => resolve(socket.destroy() && true));
    socket.once('error', () => resolve(false));
  });

test('a port that the running app itself holds is not a problem; a port of another app is a problem', async () => {
  const port = await freePort();
  const app = {
    'app.toml': `[runtime.custom]\nport = ${port}\nentrypoint = ["node", "server.mjs", "${port}"]`,
    'server.mjs': PORTED,
  };
  const [running, stranger] = [await folder(app), await folder(app)];
  const child = await listener(running, port);
  try {
    const own = await checkApp(running, OPTIONS);
    expect(own.problems).toEqual([]);
    expect(own.notes).toContain(`port ${port} is held by this running app: the check did not start it again`);
    expect(report(own)).toContain('It can be deployed.');
    const { problems } = await checkApp(stranger, OPTIONS);
    expect(problems).toEqual([expect.stringContaining(`port ${port} is taken by another server`)]);
  } finally {
    child.kill('SIGKILL');
  }
});

test('a taken port that entrypoint contains is replaced, and the report has the new port', async () => {
  const port = await freePort();
  const path = await folder({
    'app.toml': `[runtime.custom]\nport = ${port}\nentrypoint = "node server.mjs --port ${port}"`,
    'server.mjs': PORTED,
  });
  const child = await listener(path, port);
  try {
    const checked = await checkApp(path, OPTIONS);
    expect(checked.problems).toEqual([]);
    expect(checked.notes).toContainEqual(
      expect.stringMatching(
        `^port ${port} is taken on this machine: the server starts on port \\d+, which replaces ${port}`,
      ),
    );
    expect(checked.startMs).toEqual(expect.any(Number));
  } finally {
    child.kill('SIGKILL');
  }
});
