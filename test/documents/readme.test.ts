// README.md: runs its commands and snippets. Excludes `npm start`, `npm run secrets` (tested elsewhere) and `npm test`, which runs this file.
import { execFile } from 'node:child_process';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RECEIVER_SECRET } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { codeBlocks, page, root } from './markdown.ts';

const README = page('README.md');
const NOT_RUN = /^npm (start|test|run secrets)\b/;
const END = '--- end of block ---';

let stack: TestStack;
let caller: Caller;
let sink: Awaited<ReturnType<typeof receiver>>;
/** The output of each command block, in order. */
let printed: string[];
beforeAll(async () => {
  sink = await receiver(() => ({ status: 204 }));
  stack = await startTestStack({ apps: join(root, 'examples') });
  caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('hello');
  const blocks = codeBlocks(README, 'sh').filter((block) => !NOT_RUN.test(block));
  const script = blocks
    .map((block) => `${block.trimEnd()}\necho "${END}"\n`)
    .join('')
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${stack.port}`)
    .replaceAll('127.0.0.1%3A8090', `127.0.0.1%3A${sink.port}`);
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, JWT_SECRET: stack.jwtSecret },
  });
  printed = stdout.split(`${END}\n`);
});
afterAll(async () => {
  await stack?.stop();
  await sink.close();
});

test('the streaming call prints what README shows', () => {
  const [shown] = codeBlocks(README, '');
  expect(printed[0]).toBe(shown);
});

test('the envelope has the fields that README shows', async () => {
  const [shown = ''] = codeBlocks(README, 'json');
  const answer = await caller.call('hello/run', { upper_range: 3 });
  const [real, documented] = [answer.text, shown].map((text) => JSON.parse(text) as Record<string, unknown>);
  expect(Object.keys(real ?? {})).toEqual(Object.keys(documented ?? {}));
  expect(real?.result).toEqual(documented?.result);
});

test('the call with a webhook is delivered, with the headers of the table, and the Node snippet verifies it', async () => {
  const request = await until(() => sink.requests[0]);
  expect(`${request.body}`).toBe(printed[1]);
  const named = [...README.matchAll(/^\| (`(?:X-|webhook-)[^|]*) \|/gm)].flatMap(([, cell = '']) =>
    cell.replaceAll('`', '').split(', '),
  );
  expect(named).toHaveLength(6);
  for (const name of named) expect(request.headers[name.toLowerCase()]).toBeDefined();

  const [snippet] = codeBlocks(README, 'js');
  const names = ['createHmac', 'timingSafeEqual', 'secret', 'requestId', 'timestamp', 'body', 'given'];
  const verify = new Function(...names, `${snippet}\nreturn genuine;`) as (...args: unknown[]) => boolean;
  const { headers, body } = request;
  const verified = (given: unknown, sent: Buffer): boolean =>
    verify(
      createHmac,
      timingSafeEqual,
      // The command has to contain this secret, because the receiver of `npm start` uses it.
      RECEIVER_SECRET,
      headers['x-request-id'],
      headers['x-service-webhook-timestamp'],
      sent,
      given,
    );
  const signature = String(headers['x-service-webhook-signature']);
  expect(verified(signature, body)).toBe(true);
  expect(verified(signature, Buffer.from(`${body} `))).toBe(false);
  expect(verified(`${signature.slice(0, -1)}x`, body)).toBe(false);
});

test('the function that README shows can be called at the path that README shows', async () => {
  const [code = ''] = codeBlocks(README, 'python');
  const folder = join(stack.appsDir, 'demo', 'written');
  await mkdir(folder);
  await writeFile(join(folder, 'main.py'), code);
  await caller.ready('written');
  const { events } = await caller.stream('written/run', { upper_range: 2 });
  expect(await events.rest()).toEqual(['data: Number 0', 'data: Number 1']);
});
