// docs/functions.md: runs its functions, and compares each answer with the shown answer.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { codeBlocks, page } from './markdown.ts';

const PAGE = page('docs/functions.md');

let apps: string;
let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  apps = await mkdtemp(join(tmpdir(), 'page-'));
  await mkdir(join(apps, 'demo/page'), { recursive: true });
  await writeFile(join(apps, 'demo/page/main.py'), codeBlocks(PAGE, 'python').join('\n'));
  stack = await startTestStack({ apps });
  caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('page');
});
afterAll(async () => {
  await stack?.stop();
  await rm(apps, { recursive: true, force: true });
});

interface Message {
  readonly first: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

function messageOf(block: string): Message {
  const [head = '', ...rest] = block.trimEnd().split('\n\n');
  const [first = '', ...lines] = head.split('\n');
  const headers = Object.fromEntries(lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.split(': ')[1]]));
  return { first, headers, body: rest.join('\n\n') };
}

const blocks = codeBlocks(PAGE, 'http').map(messageOf);
const exchanges = blocks.flatMap((request, at) =>
  request.first.startsWith('POST ') ? [[request, blocks[at + 1] as Message] as const] : [],
);

/** Returns an envelope without the values of one run. */
function lasting(text: string): unknown {
  const { run_id, run_time_ms, timestamp, ...rest } = JSON.parse(text) as Record<string, unknown>;
  return { ...rest, had: [run_id, run_time_ms, timestamp].map((each) => each !== undefined) };
}

test('the page has an exchange for every function', () => {
  const called = new Set(exchanges.map(([{ first }]) => first.split(' ')[1]?.split('/').at(-1)));
  const defined = [
    ...codeBlocks(PAGE, 'python')
      .join('\n')
      .matchAll(/^(?: {4})?def ([a-z]\w*)/gm),
  ].map(([, name]) => name);
  expect([...called].sort()).toEqual(defined.filter((name) => name !== 'setup').sort());
});

test.each(exchanges.map(([request, answer]) => [`${request.first} ${request.body.slice(0, 40)}`, request, answer]))(
  '%s',
  async (_, request, shown) => {
    const { first, headers, body } = request as Message;
    const multipart = headers['content-type']?.startsWith('multipart/') === true;
    const { first: line, headers: shownHeaders, body: shownBody } = shown as Message;
    const answer = await caller.request(first.split(' ')[1] as string, {
      method: 'POST',
      headers,
      ...(body !== '' && { body: multipart ? `${body.replaceAll('\n', '\r\n')}\r\n` : body }),
    });
    expect(answer.status).toBe(Number(line.split(' ')[1]));
    expect(answer.headers).toMatchObject(shownHeaders);
    if (shownHeaders['content-type']?.startsWith('application/json')) {
      expect(lasting(answer.text)).toEqual(lasting(shownBody));
    } else expect(answer.text).toBe(shownBody);
  },
);
