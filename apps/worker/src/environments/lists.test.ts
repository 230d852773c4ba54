// Contract 7, "Dependencies": the forms of lists of packages, and the masking of credentials.
import { expect, test } from '@jest/globals';
import { buildCommandsOf, requirementOf } from '../deployments/build-keys.ts';
import { parseManifest } from '../deployments/manifest.ts';
import { sectionsOf } from '../deployments/manifest-text.ts';
import { buildVariables } from './build-variables.ts';
import { maskOf } from './masked.ts';
import { requirementLines } from './requirement-lines.ts';

test.each([
  ['torch', 'latest', 'torch'],
  ['torch', '*', 'torch'],
  ['torch', '', 'torch'],
  ['torch', '2.1.3', 'torch==2.1.3'],
  ['torch', '>=2.0, <3', 'torch>=2.0,<3'],
  ['torch', '== 2.*', 'torch== 2.*'],
  ['uvicorn[standard]', '~=0.30', 'uvicorn[standard]~=0.30'],
  ['own', 'git+https://example.com/own.git@main', 'own @ git+https://example.com/own.git@main'],
])('%s = %j is the line %j', (name, version, line) => {
  expect(requirementOf(name, version)).toBe(line);
});

test.each([
  ['-r /etc/passwd', 'latest'],
  ['a b', 'latest'],
  ['a\n-r x', 'latest'],
  ['a', '1\n-r x'],
  ['a', './lib'],
  ['a', 'file:///etc'],
  ['a', '>=1 --index-url http://x'],
])('%j = %j is refused', (name, version) => {
  expect(() => requirementOf(name, version)).toThrow(/^\[dependencies\.pip\] [^:]*: expected/);
});

test('the tables of dependencies are read with and without the prefix of the hosted product', () => {
  const text = `[cerebrium.deployment]
shell_commands = ["echo after"]
[cerebrium.runtime.python]
pre_build_commands = ["echo before", " "]
[cerebrium.dependencies.pip]
b = "1"
[dependencies.pip]
a = "latest"
[dependencies.paths]
pip = "list.txt"
conda = "x"
[dependencies.apt]
ffmpeg = "latest"`;
  const { build, unknown, unused } = parseManifest(text, 1);
  expect(build).toEqual({
    pip: ['b==1', 'a'],
    pipFile: 'list.txt',
    apt: ['ffmpeg'],
    installScripts: false,
    before: ['echo before'],
    after: ['echo after'],
  });
  expect(unknown).toEqual([]);
  expect(unused).toEqual(['dependencies.paths.conda']);
});

test.each([
  ['[dependencies.pip]\nx = 1.26', /\[dependencies\.pip\] x: expected a version in quotes/],
  ['[dependencies.paths]\npip = "../list.txt"', /\[dependencies\.paths\] pip: expected a path inside the app folder/],
  ['[deployment]\nshell_commands = "ls"', /\[deployment\] shell_commands: expected a list of commands/],
])('%j is refused', (text, message) => {
  expect(() => parseManifest(text, 1)).toThrow(message);
});

test('commands of all sections are read', () => {
  const found = sectionsOf('[runtime.custom]\nshell_commands = ["a"]\n[deployment]\nshell_commands = ["b"]');
  expect(buildCommandsOf(found)).toEqual({ before: [], after: ['b', 'a'] });
});

test('requirement lines are read as pip reads them', () => {
  const text = [
    '\uFEFFone==1 # comment',
    '#only a comment',
    'two \\',
    '  >=2',
    "three; python_version < '4'",
    'four[extra] @ https://example.com/four.whl#sha256=1',
    '--index-url https://example.com/simple',
    '-f https://example.com/links',
    '-e git+https://example.com/five.git#egg=five',
    '-r inner.txt',
    '-cbounds.txt',
    './six[extra] ; python_version > "3"',
    'wheels/seven.whl',
    'eight.whl',
    '-e "./nine"',
  ].join('\r\n');
  expect(requirementLines(text)).toEqual([
    ...['one==1', 'two   >=2', "three; python_version < '4'"].map((plain) => ({ kind: 'plain', text: plain })),
    { kind: 'plain', text: 'four[extra] @ https://example.com/four.whl#sha256=1' },
    { kind: 'plain', text: '--index-url https://example.com/simple' },
    { kind: 'plain', text: '-f https://example.com/links' },
    { kind: 'plain', text: '-e git+https://example.com/five.git#egg=five' },
    { kind: 'file', constraints: false, path: 'inner.txt' },
    { kind: 'file', constraints: true, path: 'bounds.txt' },
    { kind: 'local', path: './six', text: './six[extra] ; python_version > "3"' },
    { kind: 'local', path: 'wheels/seven.whl', text: 'wheels/seven.whl' },
    { kind: 'local', path: 'eight.whl', text: 'eight.whl' },
    { kind: 'local', path: './nine', text: '-e "./nine"' },
  ]);
});

test('credentials are masked in URLs, and wherever a known secret occurs', () => {
  const mask = maskOf({
    PIP_INDEX_URL: 'https://robot:p%40ssword@example.com/simple',
    UV_INDEX: 'https://token-1234@example.com/a https://other:second-one@example.com/b',
    'npm_config_//example.com/:_authToken': 'npm-secret',
    PATH: '/usr/bin',
  });
  expect(mask('from https://robot:p%40ssword@example.com/simple and git+ssh://git@example.com/x')).toBe(
    'from https://***@example.com/simple and git+ssh://***@example.com/x',
  );
  expect(mask('p@ssword p%40ssword token-1234 second-one npm-secret /usr/bin')).toBe('*** *** *** *** *** /usr/bin');
  expect(mask('https://example.com/a@b')).toBe('https://example.com/a@b');
});

test('a build sees the settings of the tools, and no secret of the worker', () => {
  const own = {
    PATH: '/bin',
    REDIS_URL: 'redis://secret',
    PIP_INDEX_URL: 'https://one',
    PIP_CONSTRAINT: '/c.txt',
    UV_CONSTRAINT: '/own.txt',
    UV_EXTRA_INDEX_URL: 'https://extra',
    PIP_EXTRA_INDEX_URL: 'https://two',
    NPM_CONFIG_REGISTRY: 'https://three',
    'npm_config_//three/:_authToken': 'x',
    https_proxy: 'http://proxy',
    UNSET: undefined,
  };
  const env = buildVariables(own, '/tmp/build');
  expect(env).toMatchObject({
    PATH: '/bin',
    PIP_INDEX_URL: 'https://one',
    UV_DEFAULT_INDEX: 'https://one',
    UV_CONSTRAINT: '/own.txt',
    NPM_CONFIG_REGISTRY: 'https://three',
    'npm_config_//three/:_authToken': 'x',
    https_proxy: 'http://proxy',
    TMPDIR: '/tmp/build',
    PIP_CACHE_DIR: '/tmp/build/pip',
  });
  expect(env).not.toHaveProperty('REDIS_URL');
  expect(env).not.toHaveProperty('UV_INDEX');
});
