// docs/runs.md: the states that it draws are the code's, and its recipes are run, over connections that break. (Its table of combinations: apps/gateway/src/calls.)
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runTransitions } from '@inference-proxy/contracts';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { listening, type Receiver } from '../receiver/receivers.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { signToken } from '../stack/tokens.ts';
import { codeBlocks, page, root, tableRows, ticked } from './markdown.ts';

const RUNS = page('docs/runs.md');
const HOST = '127.0.0.1:8080';

test('the table of states is the code’s', () => {
  const told = tableRows(RUNS, /^A run's life/).map(([from = '', to = '', when, script = '']) => ({
    from: ticked(from)[0] ?? 'none',
    to: ticked(to)[0],
    when,
    script: ticked(script)[0],
  }));
  expect(told).toEqual(runTransitions.map(({ from, to, when, script }) => ({ from, to, when, script })));
});

test('the diagram has an arrow for each of its steps, and no other', () => {
  const [diagram = ''] = codeBlocks(RUNS, 'mermaid');
  const drawn = [...diagram.matchAll(/^ +(\S+) --> (\S+)$/gm)].map(([, from, to]) => `${from} ${to}`);
  const known = runTransitions.map(({ from, to }) => `${from === 'none' ? '[*]' : from} ${to}`);
  expect(drawn.sort()).toEqual([...new Set(known)].sort());
});

let stack: TestStack;
let token: string;
let folder: string;
let cutting: Receiver & { cuts: number };
beforeAll(async () => {
  stack = await startTestStack({ apps: join(root, 'examples') });
  token = signToken(stack.jwtSecret, { project: 'demo', ttlS: 3600 });
  await new Caller(stack.port, stack.jwtSecret).ready('hello');
  folder = await mkdtemp(join(tmpdir(), 'recipes-'));
  cutting = await cuttingProxy(stack.port);
});
afterAll(async () => {
  await cutting?.close();
  await stack?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** How much of what follows its first event a connection brings that is cut: less than an event. */
const BEYOND_BYTES = 12;

/** The gateway behind connections of which the next `cuts` break in the middle of their second event. */
async function cuttingProxy(port: number): Promise<Receiver & { cuts: number }> {
  const state = { cuts: 0 };
  const server = createServer((caller: Socket) => {
    const gateway = connect(port, '127.0.0.1');
    const end = (): void => {
      caller.destroy();
      gateway.destroy();
    };
    for (const socket of [caller, gateway]) socket.on('error', end).on('close', end);
    caller.pipe(gateway);
    let text = '';
    gateway.on('data', (piece: Buffer) => {
      const before = text.length;
      text += piece.toString('latin1');
      const first = /\ndata: .*\n\n/.exec(text);
      const at = first === null ? Number.POSITIVE_INFINITY : first.index + first[0].length + BEYOND_BYTES;
      const cut = text.length > at && state.cuts > 0;
      caller.write(cut ? piece.subarray(0, at - before) : piece);
      if (!cut) return;
      state.cuts--;
      gateway.removeAllListeners('data').pause();
      caller.end(end);
    });
  });
  return Object.assign(state, await listening(server));
}

async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, {
    cwd: folder,
    timeout: 170_000,
    env: { PATH: process.env.PATH, TOKEN: token, ...env },
  });
  return stdout;
}

const recipe = (language: string, port: number): string =>
  codeBlocks(RUNS, language).map((code) => code.replaceAll(HOST, `127.0.0.1:${port}`))[0] ?? '';
/** The shell recipe that has `words` in it; those that wait do not wait as long. */
const shell = (words: string): string =>
  (codeBlocks(RUNS, 'sh').find((block) => block.includes(words)) ?? '')
    .replaceAll(HOST, `127.0.0.1:${stack.port}`)
    .replace('wait=50', 'wait=1');

test('every recipe in it is run below', () => {
  expect(codeBlocks(RUNS, 'sh')).toHaveLength(4);
  expect([codeBlocks(RUNS, 'js').length, codeBlocks(RUNS, 'python').length]).toEqual([1, 1]);
});

test.each([
  ['retrying without paying twice', 'order-4711', { greeting: 'Hello, Ada!' }],
  ['calling now, asking later', 'async=true', ['Number 0', 'Number 1']],
  ['waiting behind a balancer', 'report-42', ['Number 0', 'Number 1', 'Number 2']],
])('%s', async (_, words, result) => {
  const printed = await run('bash', ['-euo', 'pipefail', '-c', shell(words)]);
  expect(JSON.parse(printed)).toMatchObject({ status: 'succeeded', result });
});

const numbered = (from: number): string =>
  [0, 1, 2, 3]
    .slice(from)
    .map((n) => `Number ${n}`)
    .join('\n');

test('curl takes the stream up after the last event that came whole', async () => {
  const printed = await run('bash', ['-euo', 'pipefail', '-c', shell('Last-Event-ID')]);
  expect(printed).toContain('the connection broke');
  const first = Number(/data: Number (\d)/.exec(printed)?.[1]);
  expect(first).toBeGreaterThan(0);
  const items = [...printed.matchAll(/^data: (.*)$/gm)].map(([, item]) => item).join('\n');
  expect(items).toBe(numbered(first));
});

test('JavaScript reads every item once though its connection breaks twice', async () => {
  cutting.cuts = 2;
  const code = `const { TOKEN } = process.env;\n${recipe('js', cutting.port)}`;
  expect(await run(process.execPath, ['--input-type=module', '-e', code])).toBe(`${numbered(0)}\n`);
  expect(cutting.cuts).toBe(0);
});

test('so does Python', async () => {
  cutting.cuts = 2;
  const code = `import os\nTOKEN = os.environ["TOKEN"]\n${recipe('python', cutting.port)}`;
  expect(await run('python3', ['-c', code])).toBe(`${numbered(0)}\n`);
  expect(cutting.cuts).toBe(0);
});
