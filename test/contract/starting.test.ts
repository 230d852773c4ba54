// Contract 1 and 2: calls for an app that is starting. The app's functions decide the form of the answer, and how a form is read.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

let stack: TestStack;
let caller: Caller;
beforeAll(async () => {
  stack = await startTestStack({ env: { REQUEST_TIMEOUT_S: '60' } });
  caller = new Caller(stack.port, stack.jwtSecret);
});
afterAll(() => stack?.stop());

const PROGRAM = `
import os, time
from collections.abc import Iterator
from typing import Annotated

while not os.path.exists("MARK"):
    time.sleep(0.01)

def image(size: int) -> Annotated[bytes, "image/png"]:
    return b"\\xff" * size

def sound(pieces: int) -> Iterator[Annotated[bytes, "audio/mpeg"]]:
    for _ in range(pieces):
        yield b"\\xfe"

def numbers(n: int):
    yield from range(n)

def double(n: int):
    return 2 * n
`;

/** Adds an app whose import ends when the returned function is called. */
async function startingApp(name: string, ending = ''): Promise<() => Promise<void>> {
  const mark = join(stack.marksDir, name);
  const folder = join(stack.appsDir, 'demo', name);
  await mkdir(folder);
  await writeFile(join(folder, 'main.py'), PROGRAM.replace('MARK', mark) + ending);
  await caller.ready(name, 'starting');
  return () => writeFile(mark, '');
}

/** Resolves when so many runs of the app wait in its queue. */
const queued = (app: string, count: number): Promise<unknown> =>
  until(async () => {
    const { text } = await caller.request(`${caller.path}/runs?app=${app}&status=queued`, { method: 'GET' });
    return (JSON.parse(text) as { runs: unknown[] }).runs.length === count;
  });

const form = (fn: string, body: string): Promise<Answer> =>
  caller.request(`${caller.path}/${fn}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body,
  });

const seen = ({ status, headers, text }: Answer): unknown => [status, headers['content-type'], text];

test('calls of an app that is starting are answered like calls of a ready app', async () => {
  const start = await startingApp('slow');
  const forms = [form('slow/double', 'n=4'), form('slow/double', 'n=many'), form('slow/nothing', 'n=1')];
  const calls = [
    caller.call('slow/image', { size: 2 }),
    caller.call('slow/sound', { pieces: 2 }),
    caller.call('slow/numbers', { n: 3 }),
    caller.call('slow/double', { n: 4 }),
    caller.call('slow/image', { size: 'many' }),
  ];
  await queued('slow', calls.length);
  await start();
  const [image, sound, numbers, double, wrong] = (await Promise.all(calls)) as [Answer, Answer, Answer, Answer, Answer];
  expect([image.status, image.headers['content-type'], image.headers['content-length']]).toEqual([
    200,
    'image/png',
    '2',
  ]);
  expect([sound.status, sound.headers['content-type']]).toEqual([200, 'audio/mpeg']);
  expect(JSON.parse(numbers.text)).toMatchObject({ status: 'succeeded', result: [0, 1, 2] });
  expect(JSON.parse(double.text)).toMatchObject({ status: 'succeeded', result: 8 });
  expect([wrong.status, errorOf(wrong).code]).toEqual([422, 'invalid_input']);
  const [accepted, refused, unknown] = (await Promise.all(forms)) as [Answer, Answer, Answer];
  expect(seen(accepted)).toEqual([200, double.headers['content-type'], expect.stringContaining('"result":8')]);
  expect([refused.status, errorOf(refused).code]).toEqual([422, 'invalid_input']);
  expect([unknown.status, errorOf(unknown).code]).toEqual([404, 'not_found']);
});

test('a form for an app that does not start is answered with the reason', async () => {
  const start = await startingApp('fails', '\nraise ValueError("no model")\n');
  const answer = form('fails/double', 'n=4');
  await start();
  const { status, text } = await answer;
  expect(status).toBe(503);
  expect(JSON.parse(text)).toMatchObject({ error: { code: 'app_failed_to_start' } });
});
