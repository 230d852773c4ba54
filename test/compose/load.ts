// Callers that never stop. They record each call's result and times, so that a test can check which calls may have failed.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller } from '../client/caller.ts';
import { errorOf, textOf } from '../client/http.ts';

export interface CallOutcome {
  readonly kind: 'call' | 'stream' | 'promised';
  /** Time of `performance.now()`. */
  readonly beganAt: number;
  readonly endedAt: number;
  /** `ok`, or the contract's error code, or `broken` if the connection ended within the answer. */
  readonly is: string;
  /** The message of the error object. */
  readonly message?: string;
  readonly runId?: string;
}

const ITEMS = 5;
const ITEM_S = 0.2;
/** Enough callers to keep a machine of two cores busy without overloading it. */
const CALLERS = { call: 4, stream: 4, promised: 1 } as const;
const PROMISED_EVERY_MS = 150;

/** The result of one call. */
type Came = Pick<CallOutcome, 'is' | 'message' | 'runId'>;

/** Returns the error of a failed answer. */
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

  /** Starts the calls. @param webhook receiver of the promised calls, and the secret */
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

  /** Resolves when `count` further calls have succeeded. */
  async succeeds(count: number): Promise<void> {
    const wanted = this.#good() + count;
    while (this.#good() < wanted) await sleep(50);
  }

  /** Starts no more calls. Resolves with the results of all calls. */
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
