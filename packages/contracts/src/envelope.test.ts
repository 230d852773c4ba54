import { expect, test } from '@jest/globals';
import { envelope } from './envelope.ts';
import { type ErrorFields, errorStatus, retryAfterOf } from './errors.ts';
import type { AnswerForm } from './http-exchange.ts';
import type { ItemBatch, Outcome } from './runs.ts';

const RUN = '0199a1b2-0000-7000-8000-000000000000';
const ENDED: Outcome = { state: 'succeeded', items: 0, streamed: false, runTimeMs: '1.5', endedAt: 0 };

const shown = (outcome: Partial<Outcome>, batches: ItemBatch[] = []): Record<string, unknown> =>
  JSON.parse(envelope(RUN, { ...ENDED, ...outcome }, batches).toString());

const answered = (form: AnswerForm, type: string | undefined, body: string | Buffer, status = 200) =>
  shown({
    head: { status, form, headers: type === undefined ? [] : [['Content-Type', type]] },
    result: Buffer.from(body),
  });

test('the envelope of a function has no fields of a custom runtime', () => {
  expect(shown({ result: Buffer.from('{"x":1.0}') })).toEqual({
    run_id: RUN,
    status: 'succeeded',
    result: { x: 1 },
    run_time_ms: 1.5,
    timestamp: '1970-01-01T00:00:00.000Z',
  });
});

test.each([
  [undefined, 500, false, undefined],
  [404, 404, false, undefined],
  [429, 429, true, '1'],
  [503, 503, true, '1'],
])('an error of an exception with status %s', (status, answered, retryable, retryAfter) => {
  const error: ErrorFields = { code: 'function_error', message: 'no', type: 'E', ...(status && { status }) };
  expect(errorStatus(error)).toBe(answered);
  expect(retryAfterOf(error)).toBe(retryAfter);
  const { result: _, ...failed } = ENDED;
  const text = envelope(RUN, { ...failed, state: 'failed', error }).toString();
  expect(JSON.parse(text).error).toEqual({ code: 'function_error', message: 'no', retryable, type: 'E' });
});

test('the JSON of a custom runtime is spliced unchanged, with its status and content type', () => {
  const head = { status: 201, form: 'json' as const, headers: [['content-type', 'application/json']] as const };
  const text = envelope(RUN, { ...ENDED, head, result: Buffer.from('{\n "n": 12345678901234567890, "x": 1.0\n}') });
  expect(text.toString()).toContain(
    '"status_code":201,"content_type":"application/json","result":{\n "n": 12345678901',
  );
});

test.each<[string, AnswerForm, string | undefined, string | Buffer, unknown]>([
  ['what says that it is JSON and is not', 'json', 'application/json', '{"x": NaN}', '{"x": NaN}'],
  ['text', 'text', 'text/plain', 'line\nline "two"', 'line\nline "two"'],
  ['text in another charset', 'text', 'text/plain; charset="ISO-8859-1"', Buffer.from([0x63, 0xe9]), 'cé'],
  ['text in a charset that nobody knows', 'text', 'text/plain; charset=klingon', 'é', 'é'],
  ['JSON that is no UTF-8', 'json', 'application/json', Buffer.from([0x22, 0xe9, 0x22]), '"\ufffd"'],
  ['bytes', 'binary', 'image/png', Buffer.from([0, 255, 10]), 'AP8K'],
  ['no body', 'binary', undefined, '', null],
])('the body of a custom runtime is shown by its form: %s', (_, form, type, body, result) => {
  expect(answered(form, type, body)).toMatchObject({ status_code: 200, result });
});

test('the events and lines of a custom runtime become a list of items, and pieces of text are joined', () => {
  const batches: ItemBatch[] = [
    { first: 1, count: 2, kind: 's', blob: Buffer.from('a\nb') },
    { first: 3, count: 1, kind: 'm', blob: Buffer.from('c\nd') },
  ];
  const streamed = (form: AnswerForm) =>
    shown({ streamed: true, items: 3, head: { status: 200, form, headers: [] } }, batches).result;
  expect(streamed('sse')).toEqual(['a', 'b', 'c\nd']);
  expect(streamed('chunks')).toBe('abc\nd');
});
