// Contract 7, "Dependencies": real packages of the public indexes, installed by pip, uv and npm. Without the indexes, the tests are skipped.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PackageIndex } from '@inference-proxy/test/package-index';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pythonIn, Versions } from './testing/unpacked.ts';

const run = promisify(execFile);
const LIMIT_MS = 90_000;

let versions: Versions;
let withoutPython: string | undefined;
let withoutNode: string | undefined;
beforeAll(async () => {
  versions = await Versions.make();
  const uv = join(versions.root, 'uv');
  withoutPython = await reason(async () => {
    await run('python3', ['-m', 'venv', '--without-pip', uv]);
    const pip = ['-m', 'pip', '--python', join(uv, 'bin/python'), 'install', '--quiet', '--retries', '1', 'uv'];
    await run('python3', pip, { timeout: LIMIT_MS });
  });
  withoutNode = await reason(() => run('npm', ['view', 'is-number', 'version'], { timeout: LIMIT_MS }));
});
afterAll(() => versions?.remove());

async function reason(look: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await look();
    return undefined;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return (stderr || message).trim().split('\n').at(-1);
  }
}

function skipped(what: string, why: string | undefined): boolean {
  if (why !== undefined) process.stderr.write(`The test of real packages by ${what} is skipped: ${why}\n`);
  return why !== undefined;
}

/** The settings of the tools on this machine are needed to reach the public indexes. */
const settings = (): Record<string, string> =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(PIP_|UV_|npm_config_)/i.test(name))) as Record<
    string,
    string
  >;

test('pip and uv install the same packages, and versions of both share an environment', async () => {
  if (skipped('pip and uv', withoutPython)) return;
  const uv = { PATH: `${join(versions.root, 'uv/bin')}:${process.env.PATH}` };
  const files = (more: string) => ({ 'main.py': '', 'requirements.txt': `six==1.16.0\n${more}` });
  const code = 'import six; print(six.__version__)';
  const byPip = await versions.prepare(versions.environments(settings()), files(''));
  expect(byPip.lines).toContain('running pip');
  expect(await pythonIn(byPip, code)).toBe('1.16.0');
  const byUv = await versions.prepare(versions.environments({ ...settings(), ...uv }), files('idna<4\n'));
  expect(byUv.lines).toContain('running uv pip');
  expect(await pythonIn(byUv, code)).toBe('1.16.0');
});

test('uv follows pip.conf, and a setting of uv wins', async () => {
  if (skipped('uv', withoutPython)) return;
  const index = await PackageIndex.start();
  try {
    index.addWheel('configured', '1.0', 'name = "configured"\n');
    const HOME = join(versions.root, 'home');
    await mkdir(join(HOME, '.config/pip'), { recursive: true });
    const url = index.url('robot:secret-word');
    await writeFile(join(HOME, '.config/pip/pip.conf'), `[global]\nindex-url = ${url}\n`);
    const uv = { PATH: `${join(versions.root, 'uv/bin')}:${process.env.PATH}`, HOME, XDG_CONFIG_HOME: '' };
    const files = { 'main.py': '', 'requirements.txt': 'configured' };
    const refused = versions.environments({ ...uv, UV_DEFAULT_INDEX: `${url}none/` });
    await expect(versions.prepare(refused, files)).rejects.toThrow(/^uv pip ended/);
    const { lines, ...prepared } = await versions.prepare(versions.environments(uv), files);
    expect(await pythonIn(prepared, 'import configured; print(configured.name)')).toBe('configured');
    expect(lines.join('\n')).not.toContain('secret-word');
  } finally {
    await index.stop();
  }
});

test('npm installs a package', async () => {
  if (skipped('npm', withoutNode)) return;
  const files = {
    'main.mjs': 'import isNumber from "is-number"; console.log(isNumber(7))',
    'package.json': '{"dependencies":{"is-number":"7.0.0"}}',
  };
  const { folder } = await versions.prepare(versions.environments(settings()), files);
  expect((await run('node', ['main.mjs'], { cwd: folder })).stdout.trim()).toBe('true');
});
