// Callers that never stop: what each call came to, and when, so that a test can say which may have failed.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller } from '../client/caller.ts';
import { errorOf, textOf } from '../client/http.ts';

export interface CallOutcome {
  readonly kind: 'call' | 'stream' | 'promised';
  /** `performance.now()`. */
  readonly beganAt: number;
  readonly endedAt: number;
  /** `ok`; or the contract's code of what it was answered with; or `broken`: the connection ended within the answer. */
  readonly is: string;
  /** What the error object said beside its code. */
  readonly message?: string;
  readonly runId?: string;
}

const ITEMS = 5;
const ITEM_S = 0.2;
/** As many as keep a machine of two cores busy without drowning it. */
const CALLERS = { call: 4, stream: 4, promised: 1 } as const;
const PROMISED_EVERY_MS = 150;

/** What one call came to. */
type Came = Pick<CallOutcome, 'is' | 'message' | 'runId'>;

/** What an answer that is no success says. */
function refusal(text: string): Came {
  try {
    const { code, message } = errorOf({ text });
    return { is: code, message };
  } catch {
    return { is: `no error object: ${text.slice(0, 100)}` };
  }
}

async function call(caller: Caller): Promise<Came> {
  const { status, text } = await caller.call('streams/sleeping', { n: ITEMS, seconds: ITEM_S });
  if (status !== 200) return refusal(text);
  const { result } = JSON.parse(text) as { result: unknown };
  return { is: JSON.stringify(result) === '[0,1,2,3,4]' ? 'ok' : `wrong result: ${text}` };
}

async function stream(caller: Caller): Promise<Came> {
  const { answer, events } = await caller.stream('streams/sleeping', { n: ITEMS, seconds: ITEM_S });
  if (answer.statusCode !== 200) return refusal(await textOf(answer));
  const came = (await events.rest()).filter((event) => !event.startsWith(':'));
  const failure = /^event: error\ndata: (.*)$/s.exec(came.at(-1) ?? '')?.[1];
  const items = failure === undefined ? came : came.slice(0, -1);
  if (items.some((event, at) => event !== `data: ${at}`)) return { is: `wrong events: ${came.join(' | ')}` };
  if (failure !== undefined) return refusal(failure);
  return { is: items.length === ITEMS ? 'ok' : `ended early and said nothing: ${came.join(' | ')}` };
}

export class Load {
  readonly outcomes: CallOutcome[] = [];
  #stopped = false;
  readonly #loops: Promise<void>[];

  /** Begins at once. @param webhook where promised calls have their envelope sent to, and the secret */
  constructor(caller: Caller, webhook: { readonly url: string; readonly secret: string }) {
    const query = `?async=true&webhookEndpoint=${encodeURIComponent(webhook.url)}`;
    const headers = { 'x-webhook-secret': webhook.secret };
    const promised = async (): Promise<Came> => {
      const { status, text } = await caller.call('streams/value', { value: 'promised' }, { query, headers });
      await sleep(PROMISED_EVERY_MS);
      return status === 202 ? { is: 'ok', runId: (JSON.parse(text) as { run_id: string }).run_id } : refusal(text);
    };
    const kinds = {
      call: () => call(caller),
      stream: () => stream(caller),
      promised,
    };
    this.#loops = (Object.keys(kinds) as (keyof typeof kinds)[]).flatMap((kind) =>
      Array.from({ length: CALLERS[kind] }, () => this.#loop(kind, kinds[kind])),
    );
  }

  /** Resolves when `count` further calls have ended well. */
  async succeeds(count: number): Promise<void> {
    const wanted = this.#good() + count;
    while (this.#good() < wanted) await sleep(50);
  }

  /** Begins no more calls; resolves with what all came to. */
  async stop(): Promise<readonly CallOutcome[]> {
    this.#stopped = true;
    await Promise.all(this.#loops);
    return this.outcomes;
  }

  #good(): number {
    return this.outcomes.filter(({ is }) => is === 'ok').length;
  }

  async #loop(kind: CallOutcome['kind'], once: () => Promise<Came>): Promise<void> {
    while (!this.#stopped) {
      const beganAt = performance.now();
      const came = await once().catch(
        (error: NodeJS.ErrnoException): Came => ({
          is:
            error.code === 'ECONNRESET' || /ended within an event|aborted/.test(error.message)
              ? 'broken'
              : error.message,
        }),
      );
      this.outcomes.push({ kind, beganAt, endedAt: performance.now(), ...came });
    }
  }
}
