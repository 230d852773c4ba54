// Contract 7, "Dependencies": npm packages and commands of builds, with a real npm and a registry on this machine.
import { execFile } from 'node:child_process';
import { mkdir, readdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { NpmRegistry } from '@inference-proxy/test/npm-registry';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { PreparedVersion } from './environments.ts';
import { textOf, Versions } from './testing/unpacked.ts';

const run = promisify(execFile);

let registry: NpmRegistry;
let versions: Versions;
beforeAll(async () => {
  registry = await NpmRegistry.start();
  versions = await Versions.make();
  await registry.add('hello', '1.0.0', 'module.exports = "one"');
  await registry.add('hello', '2.0.0', 'module.exports = require("deeper")', { dependencies: { deeper: '1' } });
  await registry.add('deeper', '1.0.0', 'module.exports = "two"');
  await registry.add('never', '1.0.0', '');
  await registry.add('noisy', '1.0.0', '', { scripts: { postinstall: 'echo ran > ran.txt' } });
});
afterAll(async () => {
  registry?.stop();
  await versions?.remove();
});

const environments = (options: Parameters<Versions['environments']>[1] = {}) =>
  versions.environments({ npm_config_registry: registry.url }, options);
const app = (dependencies: object, more: object = {}): Record<string, string> => ({
  'main.mjs': 'import hello from "hello"; console.log(hello)',
  'package.json': JSON.stringify({ name: 'app', version: '1.0.0', dependencies, ...more }),
});

async function output({ folder }: PreparedVersion): Promise<string> {
  return (await run('node', ['main.mjs'], { cwd: folder })).stdout.trim();
}

test('the packages of package.json are installed, and versions with the same list share them', async () => {
  const own = environments();
  const first = await versions.prepare(own, app({ hello: '^2.0.0' }, { devDependencies: { never: '1' } }));
  expect(await output(first)).toBe('two');
  expect(first.lines).toContain('the environment needs 1 package of package.json');
  const again = app({ hello: '^2.0.0' }, { devDependencies: { never: '1' }, version: '2.0.0' });
  const second = await versions.prepare(own, again, { project: 'other' });
  expect(await realpath(join(second.folder, 'node_modules'))).toBe(await realpath(join(first.folder, 'node_modules')));
  expect([registry.downloads('hello'), registry.downloads('never')]).toEqual([1, 0]);
});

test('a lockfile decides the versions', async () => {
  const folder = join(versions.root, 'locked');
  await mkdir(folder);
  const files = app({ hello: '1.0.0' });
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  await run('npm', ['install', '--package-lock-only', `--registry=${registry.url}`], { cwd: folder });
  const lock = (await textOf(folder, 'package-lock.json')).replace('"hello": "1.0.0"', '"hello": "*"');
  const prepared = await versions.prepare(environments(), { ...app({ hello: '*' }), 'package-lock.json': lock });
  expect(prepared.lines).toContain('running npm ci');
  expect(await output(prepared)).toBe('one');
});

test('install scripts run only if the manifest allows them', async () => {
  const files = { 'main.mjs': '', 'package.json': JSON.stringify({ dependencies: { noisy: '1' } }) };
  const without = await versions.prepare(environments(), { ...files, '.npmrc': 'ignore-scripts=false' });
  expect(await readdir(join(without.folder, 'node_modules/noisy'))).not.toContain('ran.txt');
  const allowed = { ...files, 'app.toml': '[runtime.node]\ninstall_scripts = true' };
  const prepared = await versions.prepare(environments(), allowed);
  expect(await readdir(join(prepared.folder, 'node_modules/noisy'))).toContain('ran.txt');
});

test('an app that brings node_modules keeps it, and an app without packages needs none', async () => {
  const files = { ...app({ hello: '1' }), 'node_modules/hello/index.js': 'module.exports = "mine"' };
  const brought = await versions.prepare(environments(), files);
  expect(brought.lines).toEqual(['no packages are installed: the app brings node_modules']);
  expect(await output(brought)).toBe('mine');
  const { lines } = await versions.prepare(environments(), { 'main.mjs': '', 'package.json': '{"type":"module"}' });
  expect(lines).toEqual([]);
});

test('a package in the app’s folder belongs to the version', async () => {
  const own = environments();
  for (const said of ['a', 'b']) {
    const files = { ...app({ hello: 'file:./lib' }), 'lib/index.js': `module.exports = "${said}"` };
    const lib = { 'lib/package.json': '{"name":"hello","version":"1.0.0"}' };
    expect(await output(await versions.prepare(own, { ...files, ...lib }))).toBe(said);
  }
});

test.each([
  ['a dependency', { dependencies: { x: 'file:../../etc' } }, undefined, /package\.json names "\.\.\/\.\.\/etc"/],
  ['an absolute dependency', { dependencies: { x: '/etc' } }, undefined, /package\.json names "\/etc"/],
  ['a URL of a file', { dependencies: { x: 'file:///etc' } }, undefined, /package\.json names/],
  ['a home folder', { dependencies: { x: '~/x' } }, undefined, /package\.json names "~\/x"/],
  ['a Git folder', { dependencies: { x: 'git+file:///etc' } }, undefined, /package\.json names/],
  [
    'an override',
    { dependencies: { x: '1' }, overrides: { y: { z: 'file:..' } } },
    undefined,
    /package\.json names ".."/,
  ],
  ['a workspace', { dependencies: { x: '1' }, workspaces: ['../*'] }, undefined, /package\.json names "\.\.\/\*"/],
  ['a link', { dependencies: { x: 'link:../x' } }, undefined, /package\.json names "\.\.\/x"/],
  [
    'a resolved path of the lockfile',
    { dependencies: { x: '1' } },
    { packages: { 'node_modules/x': { resolved: 'file:../x.tgz' } } },
    /package-lock\.json names "\.\.\/x\.tgz"/,
  ],
  [
    'a linked path of the lockfile',
    { dependencies: { x: '1' } },
    { packages: { 'node_modules/x': { resolved: '../x', link: true } } },
    /package-lock\.json names "\.\.\/x"/,
  ],
  [
    'a place of the lockfile',
    { dependencies: { x: '1' } },
    { packages: { 'node_modules/../../x': {} } },
    /package-lock\.json names/,
  ],
])('%s out of the app’s folder is refused', async (_, manifest, lock, message) => {
  const files = {
    'main.mjs': '',
    'package.json': JSON.stringify(manifest),
    ...(lock && { 'package-lock.json': JSON.stringify(lock) }),
  };
  await expect(versions.prepare(environments(), files)).rejects.toThrow(message);
});

test('a package.json that is not JSON, and a failed installation, have their reasons', async () => {
  await expect(versions.prepare(environments(), { 'main.mjs': '', 'package.json': '{' })).rejects.toThrow(
    'package.json is not a JSON object',
  );
  await expect(versions.prepare(environments(), app({ missing: '1' }))).rejects.toThrow(
    /^npm install ended with exit code 1: npm error 404 .*missing/,
  );
});

test('a web server may have packages of both languages', async () => {
  const prepared = await versions
    .prepare(environments(), {
      ...app({ hello: '1' }),
      'app.toml': '[runtime.custom]\nentrypoint = "node main.mjs"',
      'requirements.txt': './lib\n',
      'lib/pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "none"',
    })
    .catch((error: Error) => error);
  // Both lists are read, and the list with a local package decides where the build runs.
  expect((prepared as Error).message).toMatch(/^pip ended with exit code/);
});

test('the token of a registry reaches npm, and no log', async () => {
  const { host } = new URL(registry.url);
  const own = versions.environments({
    npm_config_registry: registry.url,
    [`npm_config_//${host}/:_authToken`]: 'npm-secret',
  });
  const { lines } = await versions.prepare(own, app({ hello: '1', deeper: '1' }));
  expect([...registry.credentials]).toEqual(['Bearer npm-secret']);
  expect(lines.join('\n')).not.toContain('npm-secret');
});

const COMMANDS = `[deployment]
pre_build_commands = ["echo before > order.txt", "echo '{\\"said\\": 1}' > data.json"]
shell_commands = ["echo after >> order.txt", "command -v python"]`;

test('commands are refused by name, unless the worker allows them', async () => {
  const files = { 'main.py': '', 'app.toml': COMMANDS };
  await expect(versions.prepare(environments(), files)).rejects.toThrow(
    /^pre_build_commands and shell_commands of the manifest: .* ALLOW_BUILD_COMMANDS=true/,
  );
});

test('allowed commands run around the installation, in the folder that is served', async () => {
  const own = environments({ allowCommands: true });
  const { folder, lines } = await versions.prepare(own, { 'main.py': 'x = 1', 'app.toml': COMMANDS });
  expect(await textOf(folder, 'order.txt')).toBe('before\nafter\n');
  expect(await textOf(folder, 'data.json')).toContain('said');
  expect(await textOf(folder, 'main.py')).toBe('x = 1');
  expect(lines.filter((line) => line.startsWith('running'))).toHaveLength(4);
  // Another version runs its own commands.
  const failing = { 'main.py': '', 'app.toml': '[deployment]\nshell_commands = ["echo why >&2; exit 3"]' };
  await expect(versions.prepare(own, failing)).rejects.toThrow(/^shell_commands: .* ended with exit code 3: why$/);
});
