// Steady load of every kind of call, each written down as its caller saw it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller } from '../client/caller.ts';
import type { EventReader } from '../client/event-reader.ts';
import { errorOf } from '../client/http.ts';
import { ITEMS } from './checker.ts';
import type { Kind, Seen } from './history.ts';

/** As many at a time as keep two cores busy without drowning them. */
const CALLERS: Record<Kind, number> = { call: 2, stream: 2, resumed: 2, promised: 1, retried: 1 };
const STREAM = { n: ITEMS, seconds: 0.15 };
const PAUSE_MS = 60;
const AGAIN_MS = 150;
/** Who is not answered by then hangs. */
const HANGS_MS = 60_000;

type Came = Pick<Seen, 'is'> & Partial<Seen>;

const codeOf = (text: string): string => {
  try {
    return errorOf({ text }).code;
  } catch {
    return `no error object: ${text.slice(0, 80)}`;
  }
};

const isBroken = (error: NodeJS.ErrnoException): boolean =>
  ['ECONNRESET', 'EPIPE', 'ECONNREFUSED'].includes(error.code ?? '') ||
  /aborted|within an event|socket hang up/.test(error.message);

export interface LoadOptions {
  readonly caller: Caller;
  /** Where promised calls are delivered, and what signs them. */
  readonly webhook: { readonly url: string; readonly secret: string };
  /** Where functions leave a byte for each time they are entered: `<folder>/<tag>`. */
  readonly marks: string;
}

export class Load {
  readonly seen: Seen[] = [];
  #stopped = false;
  #tags = 0;
  readonly #loops: Promise<void>[];

  /** Begins at once. */
  constructor(private readonly options: LoadOptions) {
    const kinds: Record<Kind, (tag: string) => Promise<Came>> = {
      call: (tag) => this.#call(tag),
      stream: () => this.#stream(),
      resumed: () => this.#resumed(),
      promised: (tag) => this.#promised(tag),
      retried: (tag) => this.#retried(tag),
    };
    this.#loops = (Object.keys(kinds) as Kind[]).flatMap((kind) =>
      Array.from({ length: CALLERS[kind] }, () => this.#loop(kind, kinds[kind])),
    );
  }

  /** Resolves when `count` further calls of each kind have ended well. */
  async succeeds(count: number): Promise<void> {
    const wanted = Map.groupBy(this.seen, ({ kind }) => kind);
    const good = (kind: Kind): number => this.seen.filter((one) => one.kind === kind && one.is === 'ok').length;
    const before = new Map((Object.keys(CALLERS) as Kind[]).map((kind) => [kind, good(kind)]));
    const giveUpAt = performance.now() + HANGS_MS;
    while ([...before].some(([kind, had]) => good(kind) < had + count)) {
      if (performance.now() > giveUpAt)
        throw new Error(`calls do not succeed again: ${JSON.stringify([...wanted.keys()])}`);
      await sleep(50);
    }
  }

  /** Begins no more; resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #loop(kind: Kind, once: (tag: string) => Promise<Came>): Promise<void> {
    while (!this.#stopped) {
      const tag = `${kind}-${++this.#tags}`;
      const beganAt = performance.now();
      const hanging = new AbortController();
      const came = await Promise.race([
        once(tag).catch((error: NodeJS.ErrnoException): Came => ({ is: isBroken(error) ? 'broken' : String(error) })),
        sleep(HANGS_MS, { is: 'nothing: it hangs' }, { signal: hanging.signal }).catch(() => ({ is: '' })),
      ]);
      hanging.abort();
      this.seen.push({ kind, tag, beganAt, endedAt: performance.now(), ...came });
      await sleep(PAUSE_MS);
    }
  }

  async #call(tag: string): Promise<Came> {
    const { status, text, headers } = await this.options.caller.call('steady/value', { value: tag });
    const runId = String(headers['x-request-id']);
    if (status !== 200) return { is: codeOf(text), runId };
    const { result } = JSON.parse(text) as { result: unknown };
    return { is: result === tag ? 'ok' : `another’s result: ${text}`, runId };
  }

  async #stream(): Promise<Came> {
    const { answer, events, runId } = await this.options.caller.stream('steady/sleeping', STREAM);
    if (answer.statusCode !== 200) return { is: codeOf((await events.rest()).join('')), runId };
    const items: number[] = [];
    try {
      return { is: await readInto(items, events), runId, items };
    } catch (error) {
      if (!isBroken(error as Error)) throw error;
      return { is: 'broken', runId, items };
    }
  }

  async #resumed(): Promise<Came> {
    const { caller } = this.options;
    const query = '?ids=true&onDisconnect=continue';
    const first = await caller.stream('steady/sleeping', STREAM, { query });
    if (first.answer.statusCode !== 200) {
      const text = (await first.events.rest()).join('');
      return { is: codeOf(text), runId: first.runId };
    }
    const { runId } = first;
    const items: number[] = [];
    let { events } = first;
    while (true) {
      const is = await readInto(items, events).catch((error: Error) => {
        if (!isBroken(error)) throw error;
        return 'broken';
      });
      if (is !== 'broken' && is !== 'unavailable') return { is, runId, items };
      const next = await this.#again(runId, items.length);
      if (typeof next === 'string') return { is: next, runId, items };
      events = next;
    }
  }

  /** Takes the run's stream up again, however long that takes. @returns its events, or how it has ended */
  async #again(runId: string, after: number): Promise<EventReader | string> {
    const { caller } = this.options;
    while (true) {
      await sleep(AGAIN_MS);
      try {
        const taken = await caller.takeUp(runId, after);
        if (taken.answer.statusCode === 200) return taken.events;
        const text = (await taken.events.rest()).join('');
        if (taken.answer.statusCode === 204) return 'ok';
        if (codeOf(text) !== 'unavailable') return codeOf(text);
      } catch (error) {
        if (!isBroken(error as Error)) throw error;
      }
    }
  }

  async #promised(tag: string): Promise<Came> {
    const { caller, webhook } = this.options;
    const { status, text } = await caller.call(
      'steady/value',
      { value: tag },
      {
        query: `?async=true&webhookEndpoint=${encodeURIComponent(webhook.url)}`,
        headers: { 'x-webhook-secret': webhook.secret },
      },
    );
    if (status !== 202) return { is: codeOf(text) };
    return { is: 'ok', runId: (JSON.parse(text) as { run_id: string }).run_id };
  }

  /** Under one key until there is an answer; then once more, for the answer that is kept. */
  async #retried(tag: string): Promise<Came> {
    const { caller, marks } = this.options;
    const options = { headers: { 'idempotency-key': tag } };
    const answeredBy: string[] = [];
    while (true) {
      try {
        const { status, text, headers } = await caller.call('steady/entered', { mark: `${marks}/${tag}` }, options);
        const runId = String(headers['x-request-id']);
        if (status === 200) answeredBy.push(runId);
        if (status === 200 && answeredBy.length === 2) return { is: 'ok', runId, answeredBy };
        if (status !== 200 && codeOf(text) !== 'unavailable') return { is: codeOf(text), runId, answeredBy };
        if (status === 200) continue;
      } catch (error) {
        if (!isBroken(error as Error)) throw error;
      }
      await sleep(AGAIN_MS);
    }
  }
}

/** Reads to the end. @returns `ok`, or the code of the error event */
async function readInto(items: number[], events: EventReader): Promise<string> {
  for (let event = await events.next(); event !== undefined; event = await events.next()) {
    const failure = /(?:^|\n)event: error\ndata: (.*)$/s.exec(event)?.[1];
    if (failure !== undefined) return codeOf(failure);
    const item = /(?:^|\n)data: (\d+)$/.exec(event)?.[1];
    if (item !== undefined) items.push(Number(item) + 1);
  }
  return 'ok';
}
