// Contract 2: values of numpy, and exceptions of FastAPI and Starlette. The packages come from PyPI into `.data`.
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Caller } from '../client/caller.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { pythonEnvironment } from '../stack/pydantic.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

const found = await pythonEnvironment('libraries', ['numpy', 'fastapi'], ['numpy', 'fastapi', 'starlette']);
const venv = 'venv' in found ? found.venv : undefined;
if ('missing' in found) console.warn(`skipped: ${found.missing}`);
const testIf = venv === undefined ? test.skip : test;

let stack: SharedStack | undefined;
let caller: Caller;
let folder: string;
beforeAll(async () => {
  if (venv === undefined) return;
  folder = await mkdtemp(join(tmpdir(), 'libraries-'));
  const app = join(folder, 'libraries');
  await cp(join(import.meta.dirname, 'libraries'), app, { recursive: true });
  await writeFile(join(app, 'app.toml'), `[runtime.python]\nvenv = "${venv}"\n`);
  stack = await joinSharedStack('libraries', [app]);
  ({ caller } = stack);
});
afterAll(async () => {
  await stack?.leave();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

const result = ({ text }: Answer): unknown => (JSON.parse(text) as { result: unknown }).result;

testIf.each([
  ['integer', 7],
  ['unsigned', 255],
  ['float', 0.5],
  ['double', 0.1],
  ['long double', 0.5],
  ['boolean', true],
  ['text', 'é'],
  ['time', '2026-11-21T04:05:06'],
  [
    'array',
    [
      [0, 1],
      [2, 3],
    ],
  ],
  ['empty', []],
  ['no dimension', 3],
  ['texts', ['a', 'b']],
  ['times', ['2026-11-21']],
  ['tensor', [[1.5, 2]]],
  ['tensor scalar', 2],
  ['objects', [{ 1: 2 }, null]],
])('the %s is %j', async (name, value) => {
  const answer = await caller.call('libraries/value', { name });
  expect([answer.status, result(answer)]).toEqual([200, { value }]);
});

testIf.each([
  ['nan', 'result.value: float'],
  ['nan inside', 'result.value[1]: float inf is not JSON'],
  ['complex', 'result.value: complex'],
])('the value %s is unserializable_output', async (name, message) => {
  const answer = await caller.call('libraries/value', { name });
  expect([answer.status, errorOf(answer).code]).toEqual([500, 'unserializable_output']);
  expect(errorOf(answer).message).toContain(message);
});

testIf('items and keys of libraries are encoded like results', async () => {
  expect(result(await caller.call('libraries/items'))).toEqual([0.5, [0, 1], [1]]);
  expect(result(await caller.call('libraries/keys'))).toEqual({ 7: 1, a: 2 });
});

testIf.each([
  ['fastapi', 418, 'short and stout', {}, "I'm a Teapot", 'short and stout', undefined],
  ['fastapi', 404, { id: [1] }, { 'X-Reason': 'gone' }, 'Not Found', '{"id":[1]}', undefined],
  ['fastapi', 429, 'slowly', { 'Retry-After': '7' }, 'Too Many Requests', 'slowly', '7'],
  ['fastapi', 503, null, {}, 'Service Unavailable', 'Service Unavailable', '1'],
  ['starlette', 418, 'short and stout', {}, "I'm a Teapot", 'short and stout', undefined],
  ['starlette', 400, null, { 'Retry-After': '7' }, 'Bad Request', 'Bad Request', undefined],
  [
    'starlette',
    503,
    'later',
    { 'retry-after': 'Sat, 21 Nov 2026 04:00:00 GMT' },
    'Service Unavailable',
    'later',
    'Sat, 21 Nov 2026 04:00:00 GMT',
  ],
] as const)(
  'HTTPException of %s with %d and %j is answered with its status and detail',
  async (library, status, detail, headers, reason, message, retryAfter) => {
    const body = JSON.stringify({ library, status, detail, headers });
    const answer = await caller.open(`${caller.path}/libraries/fails`, { body });
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    const { run_id, status: state, error } = JSON.parse(Buffer.concat(chunks).toString());
    expect([answer.statusCode, answer.statusMessage]).toEqual([status, reason]);
    expect(answer.headers['retry-after']).toBe(retryAfter);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect([answer.headers['x-request-id'], state]).toEqual([run_id, 'failed']);
    expect(answer.headers['x-reason']).toBeUndefined();
    expect(error).toEqual({
      code: 'function_error',
      message,
      retryable: status === 429 || status === 503,
      type: 'HTTPException',
    });
  },
);
