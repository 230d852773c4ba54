// Steady load of every kind of call. The record of a call has what the caller saw.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller } from '../client/caller.ts';
import type { EventReader } from '../client/event-reader.ts';
import { errorOf, textOf } from '../client/http.ts';
import { ITEMS } from './checker.ts';
import type { Kind, Seen } from './history.ts';

/** The number of callers that keeps two cores busy without overloading them. */
const CALLERS: Record<Kind, number> = { call: 2, stream: 2, resumed: 2, promised: 1, retried: 1 };
const STREAM = { n: ITEMS, seconds: 0.15 };
const PAUSE_MS = 60;
const AGAIN_MS = 150;
/** A call without an answer after this time hangs. The longest fault lasts a minute. */
const HANGS_MS = 150_000;

type Came = Pick<Seen, 'is'> & Partial<Seen>;

/** The observations of one reader so far. */
class Had {
  readonly items: number[] = [];
  readonly executions = new Set<string>();
  stalledMs = 0;
  #since = performance.now();

  /** Records that bytes arrived. */
  came(): void {
    const now = performance.now();
    this.stalledMs = Math.max(this.stalledMs, now - this.#since);
    this.#since = now;
  }

  seen(): Partial<Seen> {
    return { items: this.items, executions: [...this.executions], stalledMs: this.stalledMs };
  }
}

const failureOf = (text: string): Pick<Seen, 'is' | 'said'> => {
  try {
    const { code, message } = errorOf({ text });
    return { is: code, said: message };
  } catch {
    return { is: `no error object: ${text.slice(0, 80)}` };
  }
};
const codeOf = (text: string): string => failureOf(text).is;

const isBroken = (error: NodeJS.ErrnoException): boolean =>
  ['ECONNRESET', 'EPIPE', 'ECONNREFUSED'].includes(error.code ?? '') ||
  /aborted|within an event|socket hang up/.test(error.message);

export interface LoadOptions {
  readonly caller: Caller;
  /** The receiver of promised calls, and the secret of their signatures. */
  readonly webhook: { readonly url: string; readonly secret: string };
  /** The folder in which functions write one byte for each entry: `<folder>/<tag>`. */
  readonly marks: string;
}

export class Load {
  readonly seen: Seen[] = [];
  #stopped = false;
  #tags = 0;
  readonly #kinds: Record<Kind, (tag: string) => Promise<Came>> = {
    call: (tag) => this.#call(tag),
    stream: () => this.#stream(),
    resumed: () => this.#resumed(),
    promised: (tag) => this.#promised(tag),
    retried: (tag) => this.#retried(tag),
  };
  readonly #callers: Promise<void>[];

  readonly #options: LoadOptions;

  /** Starts the load at once. */
  constructor(options: LoadOptions) {
    this.#options = options;

    this.#callers = (Object.keys(CALLERS) as Kind[]).flatMap((kind) =>
      Array.from({ length: CALLERS[kind] }, () => this.#calls(kind)),
    );
  }

  /** Adds a caller of each kind, which stops after its first good answer. The other callers may wait for a dead part. */
  more(): void {
    for (const kind of Object.keys(CALLERS) as Kind[]) this.#callers.push(this.#calls(kind, ({ is }) => is === 'ok'));
  }

  /**
   * Resolves when `count` calls of each kind that began after `from` have succeeded, possibly before this request.
   *
   * @returns the time at which the first call of each kind had succeeded, `performance.now()`
   */
  async succeeds(count: number, from = performance.now()): Promise<number> {
    const askedAt = performance.now();
    const kinds = Object.keys(CALLERS) as Kind[];
    const good = (kind: Kind): Seen[] =>
      this.seen.filter((one) => one.kind === kind && one.is === 'ok' && one.beganAt >= from);
    while (true) {
      const lacking = kinds.filter((kind) => good(kind).length < count);
      if (lacking.length === 0) break;
      if (performance.now() > askedAt + HANGS_MS) throw new Error(`these do not succeed again: ${lacking.join(', ')}`);
      await sleep(50);
    }
    return Math.max(...kinds.map((kind) => Math.min(...good(kind).map(({ endedAt }) => endedAt))));
  }

  /** Starts no further call. Resolves when all calls have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#callers);
  }

  /** Calls one after the other. @param enough returns whether a call is the last */
  async #calls(kind: Kind, enough: (came: Came) => boolean = () => false): Promise<void> {
    while (!this.#stopped) {
      const tag = `${kind}-${++this.#tags}`;
      const beganAt = performance.now();
      const hanging = new AbortController();
      const came = await Promise.race([
        this.#kinds[kind](tag).catch(
          (error: NodeJS.ErrnoException): Came => ({ is: isBroken(error) ? 'broken' : String(error) }),
        ),
        sleep(HANGS_MS, { is: 'nothing: it hangs' }, { signal: hanging.signal }).catch(() => ({ is: '' })),
      ]);
      hanging.abort();
      const endedAt = performance.now();
      this.seen.push({ kind, tag, beganAt, endedAt, stalledMs: endedAt - beganAt, ...came });
      if (enough(came)) return;
      await sleep(PAUSE_MS);
    }
  }

  async #call(tag: string): Promise<Came> {
    const { status, text, headers } = await this.#options.caller.call('steady/value', { value: tag });
    const runId = String(headers['x-request-id']);
    if (status !== 200) return { ...failureOf(text), runId };
    const { result } = JSON.parse(text) as { result: unknown };
    return { is: result === tag ? 'ok' : `another’s result: ${text}`, runId };
  }

  async #stream(): Promise<Came> {
    const had = new Had();
    const { answer, events, runId } = await this.#options.caller.stream('steady/numbered', STREAM);
    if (answer.statusCode !== 200) return { ...failureOf(await textOf(answer)), runId };
    return { ...(await readInto(had, events)), runId, ...had.seen() };
  }

  async #resumed(): Promise<Came> {
    const { caller } = this.#options;
    const had = new Had();
    const first = await caller.stream('steady/numbered', STREAM, { query: '?ids=true&onDisconnect=continue' });
    const { runId } = first;
    if (first.answer.statusCode !== 200) return { ...failureOf(await textOf(first.answer)), runId };
    let { events } = first;
    while (true) {
      const end = await readInto(had, events);
      if (end.is !== 'broken' && end.is !== 'unavailable') return { ...end, runId, ...had.seen() };
      const next = await this.#again(runId, had.items.length);
      if (typeof next === 'string') return { is: next, runId, ...had.seen() };
      events = next;
    }
  }

  /** Resumes the run's stream, however long the run takes. @returns its events, or its outcome */
  async #again(runId: string, after: number): Promise<EventReader | string> {
    const { caller } = this.#options;
    while (true) {
      await sleep(AGAIN_MS);
      try {
        const taken = await caller.takeUp(runId, after);
        if (taken.answer.statusCode === 200) return taken.events;
        const text = await textOf(taken.answer);
        if (taken.answer.statusCode === 204) return await this.#endOf(runId);
        if (codeOf(text) !== 'unavailable') return codeOf(text);
      } catch (error) {
        if (!isBroken(error as Error)) throw error;
      }
    }
  }

  /** A 204 means that no event follows. After lost writes of Redis, the failure can have the number of a read item. Therefore the look-up decides the outcome. */
  async #endOf(runId: string): Promise<string> {
    while (true) {
      const { status, text } = await this.#options.caller.request(`/v4/demo/runs/${runId}`, { method: 'GET' });
      if (status !== 200 && codeOf(text) !== 'unavailable') return codeOf(text);
      if (status === 200) return (JSON.parse(text) as { status: string }).status === 'succeeded' ? 'ok' : codeOf(text);
      await sleep(AGAIN_MS);
    }
  }

  async #promised(tag: string): Promise<Came> {
    const { caller, webhook } = this.#options;
    const { status, text } = await caller.call(
      'steady/value',
      { value: tag },
      {
        query: `?async=true&webhookEndpoint=${encodeURIComponent(webhook.url)}`,
        headers: { 'x-webhook-secret': webhook.secret },
      },
    );
    if (status !== 202) return failureOf(text);
    return { is: 'ok', runId: (JSON.parse(text) as { run_id: string }).run_id };
  }

  /** Calls under one key until an answer comes, then once more for the stored answer. */
  async #retried(tag: string): Promise<Came> {
    const { caller, marks } = this.#options;
    const options = { headers: { 'idempotency-key': tag } };
    const answeredBy: string[] = [];
    while (true) {
      try {
        const { status, text, headers } = await caller.call('steady/entered', { mark: `${marks}/${tag}` }, options);
        const runId = String(headers['x-request-id']);
        if (status === 200) answeredBy.push(runId);
        if (status === 200 && answeredBy.length === 2) return { is: 'ok', runId, answeredBy };
        if (status !== 200 && !['unavailable', 'overloaded'].includes(codeOf(text))) {
          return { ...failureOf(text), runId, answeredBy };
        }
        if (status === 200) continue;
      } catch (error) {
        if (!isBroken(error as Error)) throw error;
      }
      await sleep(AGAIN_MS);
    }
  }
}

/** Reads to the end. @returns `ok`, the code of the error event, or `broken` */
async function readInto(had: Had, events: EventReader): Promise<Pick<Seen, 'is' | 'said'>> {
  try {
    for (let event = await events.next(); event !== undefined; event = await events.next()) {
      // Neither a quiet stream's comment nor the first lines of a stream with ids are events.
      if (event === ': keep-alive' || event.startsWith('retry: ')) continue;
      had.came();
      const failure = /(?:^|\n)event: error\ndata: (.*)$/s.exec(event)?.[1];
      if (failure !== undefined) return failureOf(failure);
      const [, item, execution] = /(?:^|\n)data: (\d+) (\w+)$/.exec(event) ?? [];
      if (item !== undefined) had.items.push(Number(item) + 1);
      if (execution !== undefined) had.executions.add(execution);
    }
    return { is: 'ok' };
  } catch (error) {
    if (!isBroken(error as Error)) throw error;
    return { is: 'broken' };
  }
}
