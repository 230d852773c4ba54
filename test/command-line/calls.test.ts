// Contract 7, "Command line": calls, streams, runs, logs and deliveries, in a pipe and in a terminal.
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { cuttingProxy } from '../client/cutting-proxy.ts';
import { until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';
import { type Ended, inPipe, PROGRAM, Terminal } from './program.ts';

const PROJECT = 'command-line';

let stack: SharedStack;
let env: Record<string, string>;
beforeAll(async () => {
  stack = await joinSharedStack(PROJECT, ['terminal']);
  const token = signToken(stack.jwtSecret, { project: PROJECT, ttlS: 3600 });
  env = { INFERENCE_PROXY_URL: `http://127.0.0.1:${stack.port}`, INFERENCE_PROXY_TOKEN: token };
});
afterAll(() => stack.leave());

const cli = (...args: string[]): Promise<Ended> => inPipe(args, { env });
const failed = { code: 1, stdout: '' };

test('in a pipe, call prints the result only, and reads its parameters from an argument, a file or standard input', async () => {
  const file = join(stack.marksDir, 'parameters.json');
  await writeFile(file, '{"value": "from a file"}');
  expect(await cli('call', 'terminal/echo', '{"value": "plain text"}')).toEqual({
    code: 0,
    stdout: 'plain text\n',
    stderr: '',
  });
  expect(await cli('call', 'terminal/echo', `@${file}`)).toMatchObject({ code: 0, stdout: 'from a file\n' });
  const piped = await inPipe(['call', 'terminal/echo', '-'], { env, input: '{"value": {"a": [1, 2]}}' });
  expect(JSON.parse(piped.stdout)).toEqual({ a: [1, 2] });
});

test('numbers keep their digits, with and without --json', async () => {
  const value = '[9007199254740993,1.0]';
  const plain = await cli('call', 'terminal/echo', `{"value": ${value}}`);
  expect(plain.stdout.replaceAll(/\s/g, '')).toBe(value);
  const json = await cli('call', 'terminal/echo', `{"value": ${value}}`, '--json');
  expect(json.stdout).toContain(`"result":${value}`);
});

test('in a terminal, call adds the run and its time', async () => {
  const terminal = new Terminal(['call', 'terminal/echo', '{"value": "plain text"}'], { env });
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown).toMatch(/plain text\r\nrun [0-9a-f-]{36} succeeded in [\d.]+ ms/);
});

test('stream prints each item when the function yields it', async () => {
  const gate = join(stack.marksDir, 'gate');
  const terminal = new Terminal(['stream', 'terminal/opens', JSON.stringify({ gate })], { env });
  await terminal.shows('first');
  await writeFile(gate, '');
  expect(await terminal.ended).toBe(0);
  expect(terminal.shown).toBe('first\r\nsecond\r\n');
});

test('stream --logs prints items on standard output and log lines on standard error; --json prints all events', async () => {
  expect(await cli('stream', 'terminal/words', '{"n": 2}', '--logs')).toMatchObject({
    code: 0,
    stdout: 'word 0\nword 1\n',
    stderr: expect.stringMatching(/line 0\n.*line 1\n/),
  });
  const { stdout } = await cli('stream', 'terminal/words', '{"n": 2}', '--json');
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string; data: unknown });
  expect(events.filter(({ event }) => event === 'item').map(({ data }) => data)).toEqual(['word 0', 'word 1']);
  expect(events.map(({ event }) => event)).toEqual(expect.arrayContaining(['queued', 'started', 'log', 'done']));
});

test('a failed run ends with 1, and --json prints the error of the service on standard error', async () => {
  const call = await cli('call', 'terminal/fails');
  expect(call).toMatchObject({
    ...failed,
    stderr: expect.stringMatching(/^function_error: this function always fails \(run /),
  });
  const json = await cli('call', 'terminal/fails', '--json');
  expect(json).toMatchObject(failed);
  expect(JSON.parse(json.stderr)).toMatchObject({
    status: 'failed',
    error: { code: 'function_error', type: 'ValueError' },
  });
  expect(await cli('stream', 'terminal/fails')).toMatchObject({
    ...failed,
    stderr: expect.stringContaining('function_error'),
  });
});

test.each([
  [2, ['call'], {}, /missing required argument/],
  [2, ['call', 'terminal'], {}, /expected <app>\/<function>/],
  [2, ['runs', 'list', '--status', 'lost'], {}, /Allowed choices are queued/],
  [2, ['no-such-command'], {}, /unknown command/],
  [3, ['apps'], { INFERENCE_PROXY_TOKEN: 'wrong' }, /unauthorized/],
  [3, ['apps'], { INFERENCE_PROXY_TOKEN: '' }, /run inference-proxy login/],
  [3, ['apps', '--project', 'other'], {}, /forbidden/],
  [4, ['call', 'terminal/no_such_function'], {}, /not_found/],
  [4, ['runs', 'show', '0199aaaa-0000-7000-8000-000000000000'], {}, /not_found/],
  [5, ['apps'], { INFERENCE_PROXY_URL: 'http://127.0.0.1:1' }, /The connection to http:\/\/127.0.0.1:1 failed/],
])('exit code %i: %j with %j', async (code, args, more, message) => {
  const project = args.includes('--project') || code === 2 ? [] : ['--project', PROJECT];
  const all = { env: { ...env, ...more } };
  const text = await inPipe([...args, ...project], all);
  expect(text).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) });
  const json = await inPipe([...args, ...project, '--json'], all);
  expect(json).toMatchObject({ code, stdout: '' });
  expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } });
});

test('wrong parameters are listed with their places', async () => {
  const { code, stderr } = await cli('call', 'terminal/echo', '{"vlaue": 1}');
  expect(code).toBe(1);
  expect(stderr).toContain('invalid_input');
  expect(stderr).toContain('body.vlaue');
});

test('Ctrl-C in a terminal cancels the run of a call', async () => {
  const terminal = new Terminal(['call', 'terminal/waits'], { env });
  const run = await until(async () => {
    const { stdout } = await cli('runs', 'list', '--function', 'waits', '--status', 'running', '--json');
    return (JSON.parse(stdout) as { runs: { run_id: string }[] }).runs[0]?.run_id;
  });
  terminal.type('\x03');
  expect(await terminal.ended).toBe(130);
  expect(await stack.caller.ended(run)).toMatchObject({ status: 'cancelled' });
});

test('a run can be started without waiting, followed, cancelled and shown', async () => {
  const { stdout } = await cli('call', 'terminal/waits', '--async');
  const run = stdout.trim();
  const followed = new Terminal(['logs', run, '--follow'], { env });
  await followed.shows('begun');
  expect(await cli('cancel', run)).toMatchObject({ code: 0, stdout: `The cancel of run ${run} was requested\n` });
  expect(await followed.ended).toBe(0);
  const shown = await cli('runs', 'show', run);
  expect(shown.stdout).toMatch(/^status +cancelled$/m);
  const json = await cli('runs', 'show', run, '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ run_id: run, status: 'cancelled' });
  expect((await cli('logs', run)).stdout).toBe('begun\n');
  expect(await cli('cancel', run)).toMatchObject({ ...failed, stderr: expect.stringContaining('conflict') });
  expect((await cli('runs', 'list', '--app', 'terminal')).stdout).toContain(`${run}  terminal/waits`);
});

test('call --wait prints the id of a run that lasts longer', async () => {
  const { stdout } = await cli('call', 'terminal/waits', '--wait', '0');
  await cli('cancel', stdout.trim());
  expect(await stack.caller.ended(stdout.trim())).toMatchObject({ status: 'cancelled' });
});

test('a broken stream ends with 5 and names the command that continues', async () => {
  const parameters = ['{"n": 200}', '--on-disconnect', 'continue'];
  const proxy = await cuttingProxy(stack.port, () => 4000);
  try {
    const url = `http://127.0.0.1:${proxy.port}`;
    const broken = await inPipe(['stream', 'terminal/words', ...parameters], {
      env: { ...env, INFERENCE_PROXY_URL: url },
    });
    expect(broken.code).toBe(5);
    const [, next = ''] = /inference-proxy (runs stream .*)$/m.exec(broken.stderr) ?? [];
    const rest = await cli(...next.split(' '));
    expect(rest.code).toBe(0);
    expect(`${broken.stdout}${rest.stdout}`).toBe(Array.from({ length: 200 }, (_, n) => `word ${n}\n`).join(''));
  } finally {
    await proxy.close();
  }
});

test('a reader of the output may close the pipe early', async () => {
  const script = `set -o pipefail; "${process.execPath}" "${PROGRAM}" --help | head -n 1`;
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', script]);
  expect({ stdout, stderr }).toEqual({ stdout: 'Usage: inference-proxy [options] [command]\n', stderr: '' });
});

test('a delivery can be listed, shown and sent again', async () => {
  const sink = await receiver(() => ({ status: 410 }));
  try {
    const more = { env: { ...env, INFERENCE_PROXY_WEBHOOK_SECRET: 'secret-of-the-test' } };
    const url = `http://127.0.0.1:${sink.port}/`;
    const called = await inPipe(['call', 'terminal/echo', '{"value": 1}', '--webhook', url, '--json'], more);
    const { run_id: run } = JSON.parse(called.stdout) as { run_id: string };
    const request = await until(() => sink.requests[0]);
    expect(request.headers['x-service-webhook-signature']).toBeDefined();
    const id = await until(async () => {
      const { stdout } = await cli('deliveries', 'list', '--status', 'failed', '--json');
      const { deliveries } = JSON.parse(stdout) as { deliveries: { run_id: string; delivery_id: string }[] };
      return deliveries.find((one) => one.run_id === run)?.delivery_id;
    });
    expect((await cli('deliveries', 'list')).stdout).toContain(`${id}  ${run}  failed`);
    expect((await cli('deliveries', 'show', run)).stdout).toMatch(/^1 .* 410$/m);
    expect(await cli('redeliver', run, id)).toMatchObject({ code: 0 });
    await until(() => sink.requests.length === 2);
    await until(async () => (await cli('deliveries', 'list', '--status', 'failed')).stdout.includes(id));
    expect(await cli('redeliver', '--all', '--host', '127.0.0.1', '--json')).toMatchObject({
      code: 0,
      stdout: '{"redelivered":1,"under_way":0}\n',
    });
    await until(() => sink.requests.length === 3);
  } finally {
    await sink.close();
  }
});

test('the name of a group lists: runs and deliveries', async () => {
  await cli('call', 'terminal/echo', '{"value": 1}');
  expect((await cli('runs', '--limit', '1')).stdout).toMatch(/^RUN .*\n[0-9a-f-]{36} /);
  expect(JSON.parse((await cli('deliveries', '--json')).stdout)).toHaveProperty('deliveries');
});
