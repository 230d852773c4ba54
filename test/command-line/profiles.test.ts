// Contract 7, "Command line": `login` stores profiles that only their owner can read.
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';
import { inPipe, type ProgramOptions, Terminal } from './program.ts';

const PROJECT = 'command-line-profiles';

let stack: SharedStack;
let url: string;
let token: string;
beforeAll(async () => {
  stack = await joinSharedStack(PROJECT, ['terminal']);
  url = `http://127.0.0.1:${stack.port}`;
  token = signToken(stack.jwtSecret, { project: PROJECT, ttlS: 3600 });
});
afterAll(() => stack.leave());

let home: string;
let options: ProgramOptions;
let file: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'profiles-'));
  options = { env: { XDG_CONFIG_HOME: home } };
  file = join(home, 'inference-proxy', 'profiles.json');
  return () => rm(home, { recursive: true, force: true });
});

const stored = async (): Promise<Record<string, object>> =>
  (JSON.parse(await readFile(file, 'utf8')) as { profiles: Record<string, object> }).profiles;

test('in a pipe, login reads the token from standard input and stores it with mode 0600', async () => {
  const { code, stdout } = await inPipe(['login', '--url', `${url}/`, '--json'], { ...options, input: `${token}\n` });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ profile: 'default', url, project: PROJECT, path: file });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await stat(join(home, 'inference-proxy'))).mode & 0o777).toBe(0o700);
  expect(await stored()).toEqual({ default: { url, token, project: PROJECT } });
  expect((await inPipe(['apps'], options)).stdout).toMatch(/^terminal +ready/m);
});

test('in a terminal, login asks for the URL and the token, and never shows the token', async () => {
  const terminal = new Terminal(['login'], options);
  await terminal.shows('URL of the gateway');
  // Ctrl-U clears the proposed URL.
  terminal.type(`\x15${url}\r`);
  await terminal.shows('Token');
  terminal.type(`${token}\r`);
  await terminal.shows('Stored the profile "default"');
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown).not.toContain(token.slice(-20));
  expect(await stored()).toEqual({ default: { url, token, project: PROJECT } });
});

test('Ctrl-C at a question ends with 130 and stores nothing', async () => {
  const terminal = new Terminal(['login', '--url', url], options);
  await terminal.shows('Token');
  terminal.type('\x03');
  expect(await terminal.ended).toBe(130);
  await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a token that the service rejects is not stored', async () => {
  const wrong = signToken('another-secret-with-enough-characters', { project: PROJECT, ttlS: 3600 });
  const ended = await inPipe(['login', '--url', url], { ...options, input: wrong });
  expect(ended).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('unauthorized') });
  await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' });
});

test.each([
  ['an empty token', [], ' \n', /The token is empty/],
  ['a wrong URL', ['--url', 'example'], 'token', /--url is wrong: expected a URL/],
])('%s is a usage error', async (_, args, input, message) => {
  const ended = await inPipe(['login', ...args], { ...options, input });
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
});

test('a token that may only call, and a token for all projects, can be stored', async () => {
  const only = signToken(stack.jwtSecret, { project: PROJECT, ttlS: 3600, more: { scope: 'call' } });
  expect(await inPipe(['login', '--url', url], { ...options, input: only })).toMatchObject({ code: 0 });
  const all = signToken(stack.jwtSecret, { project: '*', ttlS: 3600 });
  const second = await inPipe(['login', '--url', url, '--profile', 'all'], { ...options, input: all });
  expect(second.stdout).toContain('Commands need --project');
  expect(Object.keys(await stored())).toEqual(['default', 'all']);
  const without = await inPipe(['apps', '--profile', 'all'], options);
  expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('--project') });
  const found = await inPipe(['apps', '--profile', 'all', '--project', PROJECT], options);
  expect(found.stdout).toContain('terminal');
});

test('the token of a profile is never sent to the URL of another service', async () => {
  await inPipe(['login', '--url', url], { ...options, input: token });
  const env = { ...options.env, INFERENCE_PROXY_URL: 'http://127.0.0.1:1' };
  const ended = await inPipe(['apps'], { env });
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(`the profile "default" is for ${url}`) });
});

test('an unknown profile is a usage error that names the known profiles', async () => {
  await inPipe(['login', '--url', url], { ...options, input: token });
  const ended = await inPipe(['apps', '--profile', 'production'], options);
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining('Profiles: default') });
});
