// Contract 1, "OpenAI clients": merges the chunks of a generator into the one completion that a call without `stream` expects.
// Which members are joined follows OpenAI's own client (ChatCompletionStream).
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ItemBatch } from '@inference-proxy/contracts';
import { isEvents, itemTexts, LINE_END } from '../streaming/events.ts';

/** The `object` of a whole completion. */
export type CompletionKind = 'chat.completion' | 'text_completion';

type Members = Record<string, unknown>;

const DONE = '[DONE]';
/** Members of a delta that every chunk may repeat. Other texts are pieces of one text. */
const REPEATED = new Set(['id', 'index', 'name', 'role', 'type']);

/**
 * Returns the completion as JSON, or nothing if an item is not a chunk of such a completion.
 *
 * @param batches all items of the run, as JSON, as JSON text or as ready-made events
 */
export async function mergedCompletion(
  batches: readonly ItemBatch[],
  kind: CompletionKind,
): Promise<Buffer | undefined> {
  const whole = members();
  const choices = new Map<unknown, Members>();
  for (const batch of batches) {
    for (const text of itemTexts(batch, batch.blob.toString()).flatMap((item) => textsIn(batch, item))) {
      const chunk = chunkIn(text, kind);
      if (chunk === undefined) return undefined;
      replace(whole, chunk, ['choices']);
      for (const choice of chunk.choices) addChoice(choices, choice);
    }
    // Other calls proceed between the batches of a large output.
    await nextTurn();
  }
  if (choices.size === 0) return undefined;
  const finished = [...choices.values()].sort((a, b) => Number(a.index) - Number(b.index)).map(finishedChoice);
  return Buffer.from(JSON.stringify({ ...whole, object: kind, choices: finished }));
}

/** Returns the JSON texts of an item. For ready-made events: the data of each event, except the end mark. */
function textsIn({ kind }: ItemBatch, item: string): string[] {
  const texts = kind !== 'j' && isEvents(item) ? dataIn(item) : [item];
  return texts.filter((text) => text !== DONE);
}

function dataIn(events: string): string[] {
  const found: string[] = [];
  let data: string[] = [];
  for (const line of events.split(LINE_END)) {
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    else if (line === '' && data.length > 0) {
      found.push(data.join('\n'));
      data = [];
    }
  }
  return found;
}

function chunkIn(text: string, kind: CompletionKind): (Members & { readonly choices: readonly Members[] }) | undefined {
  let chunk: unknown;
  try {
    chunk = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isMembers(chunk) || !Array.isArray(chunk.choices)) return undefined;
  const isPiece = ({ delta, text: piece }: Members): boolean =>
    kind === 'chat.completion' ? isMembers(delta) : typeof piece === 'string';
  return chunk.choices.every((choice) => isMembers(choice) && isPiece(choice)) ? (chunk as never) : undefined;
}

function addChoice(choices: Map<unknown, Members>, choice: Members): void {
  const index = choice.index ?? 0;
  const known = choices.get(index) ?? Object.assign(members(), { index });
  choices.set(index, known);
  replace(known, choice, ['delta', 'text', 'logprobs']);
  for (const name of ['delta', 'text', 'logprobs']) {
    if (name in choice) known[name] = joined(known[name], choice[name], name);
  }
}

/** Returns a whole choice. If no chunk names a `finish_reason`, the reason is `stop`. */
function finishedChoice({ index, delta, text, finish_reason, logprobs, ...rest }: Members): Members {
  const end = { logprobs: logprobs ?? null, finish_reason: finish_reason ?? 'stop', ...rest };
  return isMembers(delta) ? { index, message: messageOf(delta), ...end } : { index, text, ...end };
}

function messageOf({ tool_calls, ...delta }: Members): Members {
  return {
    role: 'assistant',
    content: null,
    refusal: null,
    ...delta,
    ...(Array.isArray(tool_calls) && { tool_calls: tool_calls.map(({ index, ...call }: Members) => call) }),
  };
}

/** Copies all members of `source` but `except`. A null never replaces a value. */
function replace(target: Members, source: Members, except: readonly string[]): void {
  for (const [name, value] of Object.entries(source)) {
    if (!except.includes(name) && (value !== null || !(name in target))) target[name] = value;
  }
}

/** Joins two pieces: appends texts, extends lists, and joins elements that have the same `index`. Changes `before`. */
function joined(before: unknown, after: unknown, name: string): unknown {
  if (before === undefined || before === null) return isMembers(after) ? joinMembers(members(), after) : started(after);
  if (after === null) return before;
  if (typeof before === 'string' && typeof after === 'string') return REPEATED.has(name) ? after : before + after;
  if (Array.isArray(before) && Array.isArray(after)) return joinLists(before, after);
  return isMembers(before) && isMembers(after) ? joinMembers(before, after) : after;
}

const started = (value: unknown): unknown => (Array.isArray(value) ? joinLists([], value) : value);

function joinMembers(before: Members, after: Members): Members {
  for (const [name, value] of Object.entries(after)) before[name] = joined(before[name], value, name);
  return before;
}

function joinLists(before: unknown[], after: readonly unknown[]): unknown[] {
  for (const element of after) {
    const at = isMembers(element) && typeof element.index === 'number' ? indexed(before, element.index) : -1;
    if (at === -1) before.push(element);
    else before[at] = joined(before[at], element, '');
  }
  return before;
}

const indexed = (list: readonly unknown[], index: number): number =>
  list.findIndex((element) => isMembers(element) && element.index === index);

/** Returns an object without a prototype, in which `__proto__` is an ordinary name. */
const members = (): Members => Object.create(null);

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
