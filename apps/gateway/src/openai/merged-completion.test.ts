import type { ItemBatch, ItemKind } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import { type CompletionKind, mergedCompletion } from './merged-completion.ts';

const batch = (kind: ItemKind, ...items: string[]): ItemBatch => ({
  first: 1,
  count: items.length,
  kind,
  blob: Buffer.from(items.join('\n')),
});
const json = (...items: object[]): ItemBatch => batch('j', ...items.map((item) => JSON.stringify(item)));

async function merged(batches: readonly ItemBatch[], kind: CompletionKind = 'chat.completion'): Promise<unknown> {
  const whole = await mergedCompletion(batches, kind);
  return whole && JSON.parse(whole.toString());
}

const ABOUT = { id: 'chatcmpl-1', created: 7, model: 'm', object: 'chat.completion.chunk' };
const chunk = (delta: object, more: object = {}) => ({ ...ABOUT, choices: [{ index: 0, delta, ...more }] });

test('chunks of a chat become one completion', async () => {
  const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  expect(
    await merged([
      json(chunk({ role: 'assistant', content: '' }), chunk({ content: 'Hel' }, { finish_reason: null })),
      json(chunk({ content: 'lo' }), chunk({}, { finish_reason: 'length' }), { ...ABOUT, choices: [], usage }),
    ]),
  ).toEqual({
    id: 'chatcmpl-1',
    created: 7,
    model: 'm',
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hello', refusal: null },
        logprobs: null,
        finish_reason: 'length',
      },
    ],
    usage,
  });
});

test('tool calls are joined by their index, and repeated names and ids count once', async () => {
  const call = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] });
  const whole = await merged([
    json(
      call(0, { id: 'a', type: 'function', function: { name: 'look', arguments: '' } }),
      call(0, { id: 'a', type: 'function', function: { name: 'look', arguments: '{"q":' } }),
      call(1, { id: 'b', type: 'function', function: { name: 'add', arguments: '{}' } }),
      call(0, { function: { arguments: '1}' } }),
      chunk({}, { finish_reason: 'tool_calls' }),
    ),
  ]);
  expect(whole).toMatchObject({
    choices: [
      {
        finish_reason: 'tool_calls',
        message: {
          content: null,
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'look', arguments: '{"q":1}' } },
            { id: 'b', type: 'function', function: { name: 'add', arguments: '{}' } },
          ],
        },
      },
    ],
  });
  expect(JSON.stringify(whole)).not.toContain('"index":1');
});

test('several choices, log probabilities and texts of other servers are kept', async () => {
  const choice = (index: number, content: string) => ({
    index,
    delta: { content, reasoning_content: `${content}?` },
    logprobs: { content: [{ token: content }] },
  });
  expect(
    await merged([
      json(
        { ...ABOUT, choices: [choice(1, 'b')] },
        { ...ABOUT, choices: [choice(0, 'a'), choice(1, 'B')] },
        { ...ABOUT, choices: [choice(0, 'A')], system_fingerprint: 'f' },
      ),
    ]),
  ).toMatchObject({
    system_fingerprint: 'f',
    choices: [
      {
        index: 0,
        message: { content: 'aA', reasoning_content: 'a?A?' },
        logprobs: { content: [{ token: 'a' }, { token: 'A' }] },
        finish_reason: 'stop',
      },
      { index: 1, message: { content: 'bB' } },
    ],
  });
});

test('chunks of a text become one completion', async () => {
  const text = (piece: string, more: object = {}) => ({
    id: 'cmpl-1',
    object: 'text_completion',
    choices: [{ index: 0, text: piece, finish_reason: null, logprobs: { tokens: [piece] }, ...more }],
  });
  expect(await merged([json(text('a'), text('b'), text('', { finish_reason: 'stop' }))], 'text_completion')).toEqual({
    id: 'cmpl-1',
    object: 'text_completion',
    choices: [{ index: 0, text: 'ab', finish_reason: 'stop', logprobs: { tokens: ['a', 'b', ''] } }],
  });
});

test('chunks may be JSON text or ready-made events, with an end mark or without', async () => {
  const [one, two] = [JSON.stringify(chunk({ content: 'a' })), JSON.stringify(chunk({ content: 'b' }))];
  for (const items of [
    [batch('s', one, two)],
    [batch('s', one, two, '[DONE]')],
    [batch('m', `data: ${one}\n\n`), batch('m', `: c\n\ndata:${two}\r\n\r\n`), batch('m', 'data: [DONE]\n\n')],
    [batch('m', `data: ${one}\n\ndata: ${two}\n\ndata: [DONE]\n\n`)],
  ]) {
    expect(await merged(items)).toMatchObject({ choices: [{ message: { content: 'ab' } }] });
  }
});

test.each<[string, ItemBatch[]]>([
  ['nothing', []],
  ['an end mark alone', [batch('s', '[DONE]')]],
  ['plain texts', [batch('s', 'a', 'b')]],
  ['objects that are not chunks', [json({ n: 1 })]],
  ['whole completions', [json({ choices: [{ index: 0, message: { content: 'a' } }] })]],
  ['a chunk and something else', [json(chunk({ content: 'a' }), { error: 'x' })]],
  ['choices that are not objects', [json({ choices: [null] })]],
  ['chunks without a choice', [json({ ...ABOUT, choices: [] })]],
  ['chunks of a text, on the path of chats', [json({ choices: [{ index: 0, text: 'a' }] })]],
])('%s are not merged', async (_, batches) => {
  expect(await merged(batches)).toBeUndefined();
});

test('names with a special meaning in JavaScript are ordinary names', async () => {
  const items = batch('j', '{"choices":[{"index":0,"delta":{"__proto__":"a","content":"b"}}],"__proto__":{"x":1}}');
  const whole = (await mergedCompletion([items], 'chat.completion'))?.toString();
  expect(whole).toContain('"content":"b"');
  expect(({} as Record<string, unknown>).x).toBeUndefined();
});
