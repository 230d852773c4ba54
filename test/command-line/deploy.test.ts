// Contract 7, "Command line": from a folder to a running version, over a broken connection, and back.

import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';
import { type Ended, inPipe, Terminal } from './program.ts';

const PROJECT = 'command-line-deploy';

let stack: SharedStack;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  stack = await joinSharedStack(PROJECT, []);
  folder = await mkdtemp(join(tmpdir(), 'deploy-'));
  const scope = 'call runs:read runs:write apps:write';
  const token = signToken(stack.jwtSecret, { project: PROJECT, ttlS: 3600, more: { scope } });
  env = { INFERENCE_PROXY_URL: `http://127.0.0.1:${stack.port}`, INFERENCE_PROXY_TOKEN: token };
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await stack.leave();
});

const cli = (...args: string[]): Promise<Ended> => inPipe(args, { env, cwd: folder });
const json = async (...args: string[]): Promise<Record<string, unknown>> =>
  JSON.parse((await cli(...args, '--json')).stdout) as Record<string, unknown>;
const write = (text: string): Promise<void> => writeFile(join(folder, 'main.py'), text);
const version = async (): Promise<string> => (await cli('call', 'shipped/version')).stdout;

test('deploy shows packing, upload, log and the command to call; a second version replaces the first; rollback returns', async () => {
  await write('def version():\n    return 1\n');
  const first = await cli('deploy', '.', '--app', 'shipped');
  expect(first).toMatchObject({ code: 0 });
  expect(first.stderr).toMatch(/^Packed 1 file, .*\nUploaded .*\n/);
  expect(first.stdout).toMatch(/^shipped [0-9a-f]{12} is active\n/);
  expect(first.stdout).toContain(`/v4/${PROJECT}/shipped/version -H "Authorization: Bearer $INFERENCE_PROXY_TOKEN"`);
  expect(await version()).toBe('1\n');

  await write('def version():\n    return 2\n');
  const second = await json('deploy', '.', '--app', 'shipped');
  expect(second).toMatchObject({ app: 'shipped', state: 'active', version: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(await version()).toBe('2\n');

  expect(await cli('rollback', 'shipped')).toMatchObject({ code: 0, stdout: expect.stringContaining('is active') });
  expect(await version()).toBe('1\n');
  expect(await cli('rollback', 'shipped', String(second.version).slice(0, 8))).toMatchObject({ code: 0 });
  expect(await version()).toBe('2\n');

  const listed = await cli('versions', 'list', 'shipped');
  expect(listed.stdout).toMatch(new RegExp(`^${String(second.version).slice(0, 12)} +active `, 'm'));
  expect((await cli('versions', 'show', 'shipped', String(second.version))).stdout).toMatch(/^state +active$/m);
  expect((await cli('versions', 'log', 'shipped', String(second.version))).stdout).toMatch(/\S/);
  expect((await cli('apps', 'show', 'shipped')).stdout).toMatch(/^name +shipped$/m);
});

/** Passes connections on to a port. Calls `act` on a connection that has sent `after` bytes, once for each connection. */
async function interceptingProxy(to: number, after: number, act: (caller: Socket) => void): Promise<Server> {
  const server = createServer((caller) => {
    const service = connect(to, '127.0.0.1');
    let left = after;
    caller.on('error', () => service.destroy()).on('end', () => service.end());
    caller.on('data', (bytes: Buffer) => {
      service.write(bytes);
      if (left > 0 && left <= bytes.length) act(caller);
      left -= bytes.length;
    });
    service.on('error', () => caller.destroy());
    service.pipe(caller);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
const through = (proxy: Server): Record<string, string> => ({
  ...env,
  INFERENCE_PROXY_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
});
const MIB = 1024 * 1024;

test('in a terminal, deploy shows a bar; the same content is not uploaded again', async () => {
  await write('def version():\n    return 3\n');
  await writeFile(join(folder, 'weights.bin'), randomBytes(4 * MIB));
  let release = (): void => {};
  const proxy = await interceptingProxy(stack.port, MIB, (caller) => {
    caller.pause();
    release = () => caller.resume();
  });
  const terminal = new Terminal(['deploy', '--app', 'shipped'], { env: through(proxy), cwd: folder });
  await terminal.shows(' of 4.0 MiB');
  release();
  expect(await terminal.ended).toBe(0);
  proxy.close();
  expect(terminal.shown).toMatch(/Uploading[\s\S]*Uploaded 4\.0 MiB[\s\S]*is active/);
  const again = await cli('deploy', '--app', 'shipped');
  expect(again.stderr).toContain('already');
  expect(again.stderr).not.toContain('Uploaded');
});

test('Ctrl-C during an upload ends with 130, and leaves no archive and no version behind', async () => {
  await write('def version():\n    return 9\n');
  await writeFile(join(folder, 'weights.bin'), randomBytes(4 * MIB));
  const temporary = await mkdtemp(join(tmpdir(), 'archives-'));
  const proxy = await interceptingProxy(stack.port, MIB, (caller) => void caller.pause());
  const before = await json('versions', 'list', 'shipped');
  try {
    const terminal = new Terminal(['deploy', '--app', 'shipped'], {
      env: { ...through(proxy), TMPDIR: temporary },
      cwd: folder,
    });
    await terminal.shows(' of 4.0 MiB');
    expect(await readdir(temporary)).toHaveLength(1);
    terminal.type('\x03');
    expect(await terminal.ended).toBe(130);
    expect(await readdir(temporary)).toEqual([]);
    expect((await json('versions', 'list', 'shipped')).versions).toEqual(before.versions);
  } finally {
    proxy.close();
    await rm(temporary, { recursive: true });
  }
});

test('--no-activate builds a version and keeps the active version', async () => {
  const before = await version();
  await write('def version():\n    return 4\n');
  expect(await json('deploy', '--app', 'shipped', '--no-activate')).toMatchObject({ state: 'ready' });
  expect(await version()).toBe(before);
});

test('a version that does not start ends with 1 and its reason, and the active version serves', async () => {
  const before = await version();
  await write('import no_such_module\n');
  const ended = await cli('deploy', '--app', 'shipped');
  expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('no_such_module') });
  expect(await version()).toBe(before);
});

test('an upload over a connection that breaks twice starts again and succeeds', async () => {
  await write('def version():\n    return 5\n');
  await writeFile(join(folder, 'weights.bin'), randomBytes(4 * MIB));
  let breaks = 0;
  const proxy = await interceptingProxy(stack.port, MIB, (caller) => {
    breaks++;
    if (breaks <= 2) caller.resetAndDestroy();
  });
  try {
    const ended = await inPipe(['deploy', '--app', 'shipped'], { env: through(proxy), cwd: folder });
    expect(ended.stderr.match(/the upload starts again/g)).toHaveLength(2);
    expect(ended).toMatchObject({ code: 0 });
    expect(await version()).toBe('5\n');
  } finally {
    proxy.close();
  }
});

test('a token without apps:write may not deploy', async () => {
  const token = signToken(stack.jwtSecret, { project: PROJECT, ttlS: 3600 });
  const ended = await inPipe(['deploy', '--app', 'other'], {
    env: { ...env, INFERENCE_PROXY_TOKEN: token },
    cwd: folder,
  });
  expect(ended).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('apps:write') });
});

test('delete needs --yes in a pipe and an answer in a terminal', async () => {
  expect(await cli('apps', 'delete', 'shipped')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  const terminal = new Terminal(['apps', 'delete', 'shipped'], { env, cwd: folder });
  await terminal.shows('Delete the app shipped');
  terminal.type('y');
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown).toContain('takes no new calls');
  expect(await cli('call', 'shipped/version')).toMatchObject({ code: 4 });
});

test('secrets are set from standard input, as NAME=VALUE or by a hidden question, listed without values, and removed', async () => {
  const value = 'hidden-value-5512';
  const piped = await inPipe(['secrets', 'set', 'kept', 'FROM_INPUT'], { env, cwd: folder, input: `${value}\n` });
  expect(piped).toMatchObject({ code: 0, stdout: 'Set FROM_INPUT. The app kept restarts without lost calls\n' });
  expect(await json('secrets', 'set', 'kept', 'MODE=fast=1')).toEqual({ app: 'kept', name: 'MODE' });
  const terminal = new Terminal(['secrets', 'set', 'kept', 'ASKED'], { env, cwd: folder });
  await terminal.shows('Value of ASKED');
  terminal.type(`${value}\r`);
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown).not.toContain(value);
  const listed = await cli('secrets', 'list', 'kept');
  expect(listed.stdout.match(/^[A-Z_]+/gm)).toEqual(['NAME', 'ASKED', 'FROM_INPUT', 'MODE']);
  expect(listed.stdout).not.toContain(value);
  for (const name of ['ASKED', 'FROM_INPUT', 'MODE'])
    expect(await cli('secrets', 'unset', 'kept', name)).toMatchObject({ code: 0 });
  expect(await cli('secrets', 'unset', 'kept', 'MODE')).toMatchObject({ code: 4 });
  expect(await json('secrets', 'list', 'kept')).toEqual({ secrets: [] });
  expect((await cli('secrets', 'set', 'kept', 'PATH=x')).stderr).toContain('PATH');
});
