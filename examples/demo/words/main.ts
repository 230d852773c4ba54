// Functions in TypeScript: types from zod, an async generator that ends on a cancel, and a base URL for OpenAI's clients.
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';

/** The second argument of every function. */
interface Context {
  readonly signal: AbortSignal;
  readonly runId: string;
  readonly log: (...values: unknown[]) => void;
}

const Spell = z.object({
  text: z.string().min(1).describe('The text to send word by word.'),
  delay_ms: z.int().min(0).max(10_000).default(200).describe('Pause before each word but the first.'),
});

/** Yields a text word by word. */
export async function* spell({ text, delay_ms }: z.infer<typeof Spell>, { signal, log }: Context) {
  const words = text.trim().split(/\s+/);
  let sent = 0;
  try {
    for (const word of words) {
      if (sent > 0) await pause(delay_ms, undefined, { signal });
      sent++;
      yield word;
    }
  } finally {
    log(`sent ${sent} of ${words.length} words`);
  }
}
spell.schema = Spell;

const Count = z.object({ text: z.string() });

/** Counts how often each word occurs. */
export function count({ text }: z.infer<typeof Count>) {
  const counts = new Map<string, number>();
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}
count.schema = Count;

const Chat = z.object({
  messages: z.array(z.object({ role: z.string(), content: z.string() })).min(1),
  model: z.string().default('echo'),
  stream: z.boolean().default(false),
});

/** POST …/chat/chat/completions: answers with the last message. */
export function chat({ messages, model, stream }: z.infer<typeof Chat>, { runId }: Context) {
  const about = { id: `chatcmpl-${runId}`, created: Math.floor(Date.now() / 1000), model };
  const content = messages.at(-1)?.content ?? '';
  if (stream) return chunks(about, content);
  const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop', logprobs: null };
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  return { ...about, object: 'chat.completion', choices: [choice], usage };
}
chat.schema = Chat;

function* chunks(about: object, content: string) {
  const chunk = (delta: object, finish_reason: string | null) => ({
    ...about,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason }],
  });
  for (const part of content.match(/\s*\S+/g) ?? []) yield chunk({ content: part }, null);
  yield chunk({}, 'stop');
}
