// Contract 7, "Dependencies": versions with packages on a stack with two workers: the log, failed builds, and deaths of workers.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ONE_OF_EACH } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Deployer } from '../client/deployer.ts';
import { NpmRegistry } from '../stack/npm-registry.ts';
import { PackageIndex } from '../stack/package-index.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

let index: PackageIndex;
let registry: NpmRegistry;
let stack: TestStack;
let deployer: Deployer;
let empty: string;
beforeAll(async () => {
  index = await PackageIndex.start();
  index.addWheel('greeting', '1.0', 'text = "from a package"\n');
  registry = await NpmRegistry.start();
  await registry.add('greeting', '1.0.0', 'exports.text = "from npm"');
  empty = await mkdtemp(join(tmpdir(), 'no-apps-'));
  stack = await startTestStack({
    apps: empty,
    scale: { ...ONE_OF_EACH, worker: 2 },
    env: {
      PIP_INDEX_URL: index.url('robot:secret-word'),
      PIP_FIND_LINKS: '',
      UV_INDEX_STRATEGY: 'first-index',
      npm_config_registry: registry.url,
      LEASE_MS: '3000',
      LEASE_RENEW_MS: '500',
    },
  });
  deployer = new Deployer(stack.port, stack.jwtSecret, 'acme');
});
afterAll(async () => {
  await stack?.stop();
  await index?.stop();
  registry?.stop();
  await rm(empty, { recursive: true });
});

const greeting = (more = ''): Record<string, string> => ({
  'main.py': `import os\nimport greeting\ndef say():\n    return greeting.text\ndef variables():\n    return sorted(os.environ)\n${more}`,
  'requirements.txt': 'greeting\n',
});

const called = async (app: string, fn: string): Promise<unknown> => {
  const { status, text } = await deployer.call(app, fn);
  expect(status).toBe(200);
  return (JSON.parse(text) as { result: unknown }).result;
};

test('a version with packages serves, its log shows the build, and each worker builds the environment once', async () => {
  const { version } = await deployer.deploy('hello', greeting());
  const { text: log } = await deployer.raw('GET', `/apps/hello/versions/${version}/log?follow=true`);
  expect(log).toMatch(/event: end\ndata: .*"state":"active"/);
  for (const line of ['the environment needs 1 line of requirements.txt', 'Successfully installed greeting-1.0'])
    expect(log).toContain(line);
  expect(log).not.toContain('secret-word');
  expect(await called('hello', 'say')).toBe('from a package');
  expect(index.downloads('greeting')).toBe(2);

  const second = await deployer.deploy('hello', greeting('# changed\n'));
  expect(await deployer.settled('hello', second.version)).toMatchObject({ state: 'active' });
  const other = new Deployer(stack.port, stack.jwtSecret, 'other');
  const third = await other.deploy('hello', greeting());
  expect(await other.settled('hello', third.version)).toMatchObject({ state: 'active' });
  expect(index.downloads('greeting')).toBe(2);
  expect(stack.logs()).not.toContain('secret-word');
});

test('a TypeScript version with packages serves', async () => {
  const { version } = await deployer.deploy('typed', {
    'main.ts': "import { text } from 'greeting';\nexport const say = (): string => text;\n",
    'package.json': JSON.stringify({ type: 'module', dependencies: { greeting: '1' } }),
  });
  expect(await deployer.settled('typed', version)).toMatchObject({ state: 'active' });
  expect(await called('typed', 'say')).toBe('from npm');
  expect(registry.downloads('greeting')).toBe(2);
});

test('commands of a manifest are refused by their names', async () => {
  const { version } = await deployer.deploy('commands', {
    ...greeting(),
    'app.toml': '[deployment]\nshell_commands = ["make"]\n[dependencies.apt]\nffmpeg = "latest"',
  });
  const { state, reason } = await deployer.settled('commands', version);
  expect([state, reason]).toEqual(['failed', expect.stringContaining('shell_commands of the manifest: this worker')]);
  const { text: log } = await deployer.raw('GET', `/apps/commands/versions/${version}/log`);
  expect(log).toContain('[dependencies.apt] is not supported (ffmpeg)');
});

test('the settings of the package tools do not reach functions', async () => {
  const names = (await called('hello', 'variables')) as string[];
  expect(names).toContain('PROJECT_ID');
  expect(names.filter((name) => /^(pip|uv|npm)_/i.test(name))).toEqual([]);
});

test('a failed build keeps the active version, and the same content is built again', async () => {
  const bad = { ...greeting(), 'requirements.txt': 'greeting\nmissing\n' };
  const { version } = await deployer.deploy('hello', bad);
  const failed = await deployer.settled('hello', version);
  expect(failed).toMatchObject({ state: 'failed', rolling_out: false });
  expect(failed.reason).toMatch(/^the environment could not be built: .*missing/);
  expect(await called('hello', 'say')).toBe('from a package');

  index.addWheel('missing', '1.0', '');
  expect(await deployer.deploy('hello', bad)).toMatchObject({ status: 200, state: 'building' });
  expect(await deployer.settled('hello', version)).toMatchObject({ state: 'active' });
});

test('a hostile list is refused with its reason', async () => {
  const { version } = await deployer.deploy('hostile', { ...greeting(), 'requirements.txt': '-r ../../etc/passwd' });
  const { reason, state } = await deployer.settled('hostile', version);
  expect(state).toBe('failed');
  expect(reason).toContain("expected a path below the app's folder");
});

test('a worker that dies during a build builds the environment again after its restart', async () => {
  index.addWheel('interrupted', '1.0', '');
  const before = index.downloads('greeting');
  index.hold();
  const requested = index.requested();
  const files = { ...greeting(), 'requirements.txt': 'greeting\ninterrupted\n' };
  const { version } = await deployer.deploy('survivor', files);
  await requested;
  await Promise.all([stack.kill('worker-1'), stack.kill('worker-2')]);
  index.release();
  expect(await deployer.settled('survivor', version)).toMatchObject({ state: 'active' });
  expect(await called('survivor', 'say')).toBe('from a package');
  // The restarted workers find the environments of the earlier versions.
  expect(await called('hello', 'say')).toBe('from a package');
  expect(index.downloads('greeting')).toBe(before + 2);
});
