// Contract 1, "Parameters and types": a violation that only the function's process can find. It is the same 422 in every form of a call,
// and the function never runs.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { errorOf } from '../client/http.ts';
import { until } from '../client/until.ts';
import { receiver } from '../receiver/receivers.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

const APP = `
from dataclasses import dataclass

calls = 0

@dataclass
class Positive:
    number: int

    def __post_init__(self):
        if self.number <= 0:
            raise ValueError("not positive")

def value(x: Positive):
    global calls
    calls += 1
    return calls

def items(x: Positive):
    global calls
    calls += 1
    yield calls
`;
const WRONG = { x: { number: 0 } };
const ERROR = {
  code: 'invalid_input',
  retryable: false,
  details: [{ loc: ['body', 'x'], msg: 'Value error, not positive', type: 'value_error' }],
};

let stack: SharedStack;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refusals-'));
  await mkdir(join(folder, 'judge'));
  // The interpreter of the machine may have pydantic, whose message has more words.
  await writeFile(join(folder, 'judge', 'main.py'), `import sys\nsys.modules["pydantic"] = None\n${APP}`);
  stack = await joinSharedStack('refusals', [join(folder, 'judge')]);
});
afterAll(async () => {
  await stack?.leave();
  await rm(folder, { recursive: true, force: true });
});

test.each(['value', 'items'])('a call of %s returns 422 with details', async (fn) => {
  const answer = await stack.caller.call(`judge/${fn}`, WRONG);
  expect(answer.status).toBe(422);
  expect(errorOf(answer)).toMatchObject(ERROR);
});

test.each(['value', 'items'])('a streamed call of %s returns 422 with details', async (fn) => {
  const answer = await stack.caller.call(`judge/${fn}`, WRONG, { headers: { accept: 'text/event-stream' } });
  expect(answer.status).toBe(422);
  expect(errorOf(answer)).toMatchObject(ERROR);
});

test('an asynchronous run ends as failed with the details, and its webhook has the same envelope', async () => {
  const hook = await receiver(() => ({ status: 204 }));
  const query = `?async=true&webhookEndpoint=${encodeURIComponent(hook.url)}`;
  const accepted = await stack.caller.call('judge/items', WRONG, { query });
  expect(accepted.status).toBe(202);
  const { run_id: runId } = JSON.parse(accepted.text) as { run_id: string };
  expect(await stack.caller.ended(runId)).toMatchObject({ status: 'failed', error: ERROR });
  const [request] = await until(() => hook.requests.length > 0 && hook.requests);
  expect(JSON.parse(String(request?.body))).toMatchObject({ run_id: runId, status: 'failed', error: ERROR });
  await hook.close();
});

test('no refused call has run its function', async () => {
  const answer = await stack.caller.call('judge/value', { x: { number: 1 } });
  expect(JSON.parse(answer.text)).toMatchObject({ result: 1 });
});
