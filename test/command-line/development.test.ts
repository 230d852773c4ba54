// Contract 7, "Command line": `init`, `dev`, `check`, `token` and `completion`.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, projectRoot } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { request } from '../client/http.ts';
import { until } from '../client/until.ts';
import { inPipe, PROGRAM, Terminal } from './program.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'command-line-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('npx starts the program in the repository', async () => {
  const npx = await promisify(execFile)('npx', ['--no-install', 'inference-proxy', '--help'], { cwd: projectRoot() });
  expect(npx.stdout).toMatch(/^Usage: inference-proxy/);
});

test.each([
  ['python', [], ['.gitignore', 'app.toml', 'main.py']],
  ['typescript', ['--template', 'typescript'], ['.gitignore', 'app.toml', 'main.ts', 'package.json']],
])('in a pipe, init creates an app in %s that check accepts', async (template, args, files) => {
  const created = await inPipe(['init', template, ...args, '--json'], { cwd: folder });
  expect(JSON.parse(created.stdout)).toEqual({ folder: join(folder, template), template, files });
  const text = await inPipe(['check', template], { cwd: folder });
  expect(text).toMatchObject({ code: 0, stdout: expect.stringContaining('It can be deployed.') });
  const json = await inPipe(['check', '--json'], { cwd: join(folder, template) });
  expect(JSON.parse(json.stdout)).toMatchObject({
    problems: [],
    notes: [],
    functions: expect.arrayContaining([
      expect.objectContaining({ name: 'greet' }),
      expect.objectContaining({ name: 'count' }),
    ]),
  });
});

test('in a terminal, init asks for the folder and the template', async () => {
  const terminal = new Terminal(['init'], { cwd: folder });
  await terminal.shows('Folder of the app');
  terminal.type('asked\r');
  await terminal.shows('Template');
  // The arrow down selects the second template.
  terminal.type('\x1b[B\r');
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown).toContain('npx inference-proxy dev');
  expect(await readdir(join(folder, 'asked'))).toContain('main.ts');
});

test('init never writes into a folder with files, nor into a folder whose name no call can have', async () => {
  await mkdir(join(folder, 'full'));
  await writeFile(join(folder, 'full', 'main.py'), '');
  expect(await inPipe(['init', 'full'], { cwd: folder })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is not empty'),
  });
  expect(await readFile(join(folder, 'full', 'main.py'), 'utf8')).toBe('');
  expect(await inPipe(['init', 'runs'], { cwd: folder })).toMatchObject({ code: 2 });
});

test('check ends with 1 and lists the problems of an app', async () => {
  await mkdir(join(folder, 'wrong'));
  await writeFile(join(folder, 'wrong', 'main.py'), 'import no_such_module\n');
  const { code, stdout } = await inPipe(['check', 'wrong', '--json'], { cwd: folder });
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ problems: [expect.stringContaining('no_such_module')] });
});

test('dev serves the app of a folder, reloads a saved file, and ends with Ctrl-C', async () => {
  const app = join(folder, 'served');
  await mkdir(app);
  await writeFile(join(app, 'main.py'), 'def version():\n    return 1\n');
  const port = await freePort();
  const env = { PORT: String(port), RECEIVER_PORT: '0', DATA_DIR: join(folder, 'data') };
  const terminal = new Terminal(['dev', '--project', 'acme'], { cwd: app, env });
  try {
    await terminal.shows('Call the first function');
    const [, token = ''] = /Token {3}(\S+)/.exec(terminal.shown) ?? [];
    const version = async (): Promise<unknown> => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await request(port, '/v4/acme/served/version', { headers, body: '{}' });
      return (JSON.parse(answer.text) as { result: unknown }).result;
    };
    expect(await version()).toBe(1);
    const made = await inPipe(['token', '--project', 'acme', '--json'], { env });
    const fresh = {
      INFERENCE_PROXY_URL: `http://127.0.0.1:${port}`,
      INFERENCE_PROXY_TOKEN: JSON.parse(made.stdout).token,
    };
    expect((await inPipe(['apps'], { env: fresh })).stdout).toMatch(/^served +ready/m);
    await writeFile(join(app, 'main.py'), 'def version():\n    return 2\n');
    await until(async () => (await version()) === 2);
    terminal.type('\x03');
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown).toContain('Stopped');
  } finally {
    terminal.type('\x03');
    await terminal.ended;
  }
});

test('token without a development secret, and with a wrong project, is refused', async () => {
  const env = { DATA_DIR: join(folder, 'nothing') };
  expect(await inPipe(['token', '--project', 'demo'], { env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no development secret'),
  });
  expect(await inPipe(['token'], { env })).toMatchObject({ code: 2, stderr: expect.stringContaining('--project') });
});

test.each(['bash', 'zsh', 'fish'])('completion %s prints a script', async (shell) => {
  const { code, stdout } = await inPipe(['completion', shell]);
  expect(code).toBe(0);
  expect(stdout).toContain('inference-proxy');
  const json = await inPipe(['completion', shell, '--json']);
  expect(JSON.parse(json.stdout)).toEqual({ shell, script: stdout });
});

test('bash completes commands with the script', async () => {
  const env = { ...process.env, PATH: `${join(PROGRAM, '..')}:${process.env.PATH}` };
  const { stdout } = await promisify(execFile)('bash', [join(import.meta.dirname, 'completes.sh')], { env });
  expect(stdout.trim().split(/\s/)[0]).toBe('show');
});
