// Compares docs/runs.md with the table of states, and runs its examples, also over connections that break. Its table of
// combinations is tested in apps/gateway/src/calls/combinations.test.ts.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gunzipSync } from 'node:zlib';
import { runTransitions } from '@inference-proxy/contracts';
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { listening, type Receiver } from '../receiver/receivers.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { codeBlocks, page, root, tableRows, ticked } from './markdown.ts';

const RUNS = page('docs/runs.md');
const HOST = '127.0.0.1:8080';

test('the table of states equals the table in packages/contracts', () => {
  const listed = tableRows(RUNS, /^A run's life/).map(([from = '', to = '', when, script = '']) => ({
    from: ticked(from)[0] ?? 'none',
    to: ticked(to)[0],
    when,
    script: ticked(script)[0],
  }));
  expect(listed).toEqual(runTransitions.map(({ from, to, when, script }) => ({ from, to, when, script })));
});

test('the diagram has exactly one arrow for each step of the table', () => {
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

/** Returns the text of an answer's bytes so far. The gateway flushes the compressor at every event. */
const textOf = (bytes: Buffer, encoding: string | undefined): string =>
  (encoding === 'gzip' ? gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }) : bytes).toString();

/** Starts a proxy before the gateway. The next `cuts` streams break within the bytes that bring their second event. */
async function cuttingProxy(port: number): Promise<Receiver & { cuts: number }> {
  const state = { cuts: 0 };
  const server = createServer((call, reply) => {
    const { method, url, headers } = call;
    const forwarded = request({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      reply.writeHead(answer.statusCode ?? 0, answer.headers);
      let bytes = Buffer.alloc(0);
      answer.on('data', (piece: Buffer) => {
        bytes = Buffer.concat([bytes, piece]);
        const events = textOf(bytes, answer.headers['content-encoding']).match(/^data: .*\n\n/gm) ?? [];
        if (state.cuts === 0 || events.length < 2) return void reply.write(piece);
        state.cuts--;
        answer.removeAllListeners('data');
        reply.write(piece.subarray(0, Math.floor(piece.length / 2)), () => reply.destroy());
      });
      answer.on('end', () => reply.end());
    });
    forwarded.on('error', () => reply.destroy());
    reply.on('close', () => forwarded.destroy());
    call.pipe(forwarded);
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
/** Returns the shell example that contains `words`, with a shorter wait. */
const shell = (words: string): string =>
  (codeBlocks(RUNS, 'sh').find((block) => block.includes(words)) ?? '')
    .replaceAll(HOST, `127.0.0.1:${stack.port}`)
    .replace('wait=50', 'wait=1');

test('this file runs every example of the page', () => {
  expect(codeBlocks(RUNS, 'sh')).toHaveLength(4);
  expect([codeBlocks(RUNS, 'js').length, codeBlocks(RUNS, 'python').length]).toEqual([1, 1]);
});

test.each([
  ['retry without a second execution', 'order-4711', { greeting: 'Hello, Ada!' }],
  ['call now, ask later', 'async=true', ['Number 0', 'Number 1']],
  ['long calls behind a balancer', 'report-42', ['Number 0', 'Number 1', 'Number 2']],
])('%s', async (_, words, result) => {
  const printed = await run('bash', ['-euo', 'pipefail', '-c', shell(words)]);
  expect(JSON.parse(printed)).toMatchObject({ status: 'succeeded', result });
});

const numbered = (from: number): string =>
  [0, 1, 2, 3]
    .slice(from)
    .map((n) => `Number ${n}`)
    .join('\n');

test('curl resumes the stream after the last complete event', async () => {
  const printed = await run('bash', ['-euo', 'pipefail', '-c', shell('Last-Event-ID')]);
  expect(printed).toContain('the connection broke');
  const first = Number(/data: Number (\d)/.exec(printed)?.[1]);
  expect(first).toBeGreaterThan(0);
  const items = [...printed.matchAll(/^data: (.*)$/gm)].map(([, item]) => item).join('\n');
  expect(items).toBe(numbered(first));
});

test('JavaScript reads every item once although its connection breaks twice', async () => {
  cutting.cuts = 2;
  const code = `const { TOKEN } = process.env;\n${recipe('js', cutting.port)}`;
  expect(await run(process.execPath, ['--input-type=module', '-e', code])).toBe(`${numbered(0)}\n`);
  expect(cutting.cuts).toBe(0);
});

test('Python reads every item once although its connection breaks twice', async () => {
  cutting.cuts = 2;
  const code = `import os\nTOKEN = os.environ["TOKEN"]\n${recipe('python', cutting.port)}`;
  expect(await run('python3', ['-c', code])).toBe(`${numbered(0)}\n`);
  expect(cutting.cuts).toBe(0);
});
