// Runs scripts one by one. Each test gets a new project and a new clock. Only the test moves the clock, so the machine's speed has no effect.
import { randomUUID } from 'node:crypto';
import { type TestRedis, testRedis } from '@inference-proxy/test/redis';
import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { Redis } from 'ioredis';
import { ENVELOPE_PIECES } from '../deliveries/kept-envelope.ts';
import { projectPrefix } from '../keys.ts';
import { type ScriptName, scriptSource, scriptText } from '../script-files.ts';
import { packArguments, type ScriptArgument, unpackReply } from '../scripts.ts';

export type Reply = string | number | null | Reply[];

const CLOCK = 'local now_us = time[1] * 1000000 + time[2]';
export const LEASE = 15_000;
/** Bytes that the parameters `{}` count after the end of their run (parts/memory.lua). */
export const KEPT_PARAMETERS = 32;
const HANDOVER = 10_000;

const texts = new Map<ScriptName, string>();

/** Returns a script's text, with the time in `KEYS[2]` instead of Redis' time. */
function textOf(name: ScriptName): string {
  const text =
    texts.get(name) ?? scriptText(scriptSource(name)).replace(CLOCK, () => 'local now_us = tonumber(KEYS[2])');
  texts.set(name, text);
  return text;
}

const decoded = (reply: unknown): Reply => {
  if (Buffer.isBuffer(reply)) return reply.toString();
  return Array.isArray(reply) ? reply.map(decoded) : (reply as number | null);
};

export interface AcceptOptions {
  readonly by?: string;
  readonly app?: string;
  readonly params?: string;
  readonly hook?: string;
  readonly keep?: number;
  readonly absent?: number | '';
  readonly promised?: boolean;
  readonly paced?: boolean;
  /** Bytes that the project's runs may take. */
  readonly room?: number;
  readonly claim?: string;
  readonly fingerprint?: string;
  readonly limit?: number;
  readonly timeout?: number;
  readonly deployed?: boolean;
  readonly live?: 'i' | 'o' | 'l' | 'f' | '-';
  /** Time from now, ms. */
  readonly executeIn?: number;
}

export interface EndOptions {
  readonly state?: string;
  readonly items?: number;
  readonly streamed?: 0 | 1;
  readonly status?: number;
  readonly error?: string;
  readonly head?: string;
  readonly retry?: number;
  readonly ms?: string;
  readonly result?: string;
}

/** One project on a real Redis. */
export class SteppedStore {
  readonly prefix = projectPrefix(randomUUID());
  #number = 0;
  /** The store's time, µs. Each script moves it by 1 µs, because the order of a queue is the order of its times. */
  #nowUs = Date.now() * 1000;

  readonly #redis: TestRedis;

  private constructor(
    redis: TestRedis,
    readonly client: Redis,
  ) {
    this.#redis = redis;
  }

  static async open(): Promise<SteppedStore> {
    const redis = await testRedis();
    return new SteppedStore(redis, new Redis(redis.socket ?? String(redis.port)));
  }

  /** Returns another project on the same server. */
  fresh(): SteppedStore {
    return new SteppedStore(this.#redis, this.client);
  }

  async close(): Promise<void> {
    this.client.disconnect();
    await this.#redis.stop();
  }

  advance(ms: number): void {
    this.#nowUs += ms * 1000;
  }

  /** Returns the store's time, ms. */
  now(): number {
    return Math.floor(this.#nowUs / 1000);
  }

  async run(name: ScriptName, ...args: ScriptArgument[]): Promise<Reply> {
    this.#nowUs += 1;
    const reply = await this.client.callBuffer('EVAL', textOf(name), 2, this.prefix, this.#nowUs, packArguments(args));
    return decoded(unpackReply(reply as Buffer));
  }

  /** @returns the run's answer, or undefined if the call was late */
  async accept(id: string, options: AcceptOptions = {}): Promise<Reply | undefined> {
    const { by = 'g1', app = 'app', params = '{}', hook = '', keep = 60_000, absent = '' } = options;
    const { claim = '', fingerprint = '', limit = 100, timeout = 600_000, live = '-', executeIn = 2000 } = options;
    const { promised = false, paced = false, room = 1e9, deployed = false } = options;
    const flags = `${promised ? 'p' : ''}${paced ? 's' : ''}${hook ? 'h' : ''}${claim ? 'c' : ''}` || '-';
    const head = [this.now() + executeIn, by, LEASE, room];
    const terms = `${keep} ${absent === '' ? '-' : absent} ${flags}`;
    const more = [
      ...(hook && ['hook', hook, 'secret', 'sealed']),
      ...(claim && ['claim', claim, 'fingerprint', fingerprint]),
    ];
    const kind = [app, 'fn', terms, limit, timeout, live, deployed ? 1 : 0];
    const [, answers] = (await this.run('accept', ...head, 1, ...kind, 1, id, params, more.length, ...more)) as [
      number,
      Reply[] | undefined,
    ];
    return answers?.[0];
  }

  /** @returns ids of the taken runs */
  async take(worker: string, number: number, slots: number, app = 'app'): Promise<Reply[]> {
    const [, , ...runs] = (await this.run('take', worker, number, LEASE, 1024 * 1024, app, slots, '')) as Reply[];
    return runs.filter((_, at) => at % 5 === 0);
  }

  /** Accepts a run that worker `w` takes as `w:1`. */
  async running(id: string, options: AcceptOptions = {}): Promise<string> {
    await this.accept(id, options);
    await this.take('w', 1, 1);
    return 'w:1';
  }

  async append(id: string, token: string, first: number, ...items: string[]): Promise<Reply[]> {
    return this.appendWindowed(id, token, first, items, '-');
  }

  /** @param taken the position that the worker knows; `-` if all items are kept */
  async appendWindowed(
    id: string,
    token: string,
    first: number,
    items: string[],
    taken: number | '-',
    window = 1000,
  ): Promise<Reply[]> {
    const batch = [id, token, first, items.length, 's', items.join('\n'), taken];
    const [answer] = (await this.run('append', window, ...batch)) as Reply[][];
    return answer as Reply[];
  }

  /** @param number of this part, rising per worker */
  async log(id: string, token: string, number: number, lines: string[], most = 1000): Promise<Reply> {
    const json = JSON.stringify(lines.map((text) => [1, 'stdout', text]));
    const [answer] = (await this.run('log', most, id, token, number, lines.length, 0, json)) as Reply[];
    return answer as Reply;
  }

  /** @returns more, bytes, earliest unpromised retention, earliest promised retention */
  async sweep(downTo: number | '' = '', most = 256): Promise<Reply[]> {
    return (await this.run('sweep', most, downTo, LEASE)) as Reply[];
  }

  /** @returns code, last number, webhook due */
  async end(id: string, token: string, items = 0, retry: 0 | 1 = 0): Promise<Reply[]> {
    if (!retry) return this.endAs(id, token, { items, result: '1' });
    return this.endAs(id, token, { state: 'failed', items, error: '{"code":"replica_crashed"}', retry });
  }

  async endAs(id: string, token: string, outcome: EndOptions): Promise<Reply[]> {
    const { state = 'succeeded', items = 0, streamed = 0, status = '', error = '', head = '', retry = 0 } = outcome;
    const { ms = '1', result = '' } = outcome;
    const code = error ? (JSON.parse(error) as { code: string }).code : '';
    const kind = [state, items, streamed, status, code, error, head, retry, ''];
    return (await this.run('end', HANDOVER, 1, ...kind, 1, id, token, ms, result)) as Reply[];
  }

  /** Sets the project's share to its present bytes and `more`. @param evictable unpromised ended runs may make room */
  async leaveRoom(more: number, evictable = false): Promise<void> {
    const bytes = Number((await this.client.get(`${this.prefix}bytes`)) ?? 0);
    await this.client.set(`${this.prefix}share`, `${bytes + more} ${evictable ? 1 : 0}`);
  }

  /** @returns ok, full, again or lost */
  async reserve(id: string, token: string, bytes: number): Promise<Reply> {
    const [answer] = (await this.run('reserve', id, token, bytes)) as Reply[];
    return answer as Reply;
  }

  async cancel(id: string, request = 'r1', tombstoneMs = 60_000): Promise<Reply> {
    const [answer] = (await this.run('cancel', HANDOVER, tombstoneMs, id, request)) as Reply[][];
    return answer?.[0] as Reply;
  }

  /** @returns state, token, last number, registered, entries, outcome */
  async follow(
    id: string,
    cursor: number,
    options: { by?: string; mode?: 'i' | 'o' | 'l' | 'f'; number?: number; bytes?: number; line?: number | '-' } = {},
  ): Promise<Reply[]> {
    const { by = 'g1', mode = 'i', number = ++this.#number, bytes = 1024 * 1024, line = 0 } = options;
    const [stale, answers] = (await this.run('follow', by, number, LEASE, bytes, id, cursor, mode, line)) as [
      number,
      Reply[][],
    ];
    return stale ? ['stale'] : (answers[0] as Reply[]);
  }

  unfollow(id: string, by = 'g1', number = ++this.#number): Promise<Reply> {
    return this.run('unfollow', by, number, HANDOVER, id);
  }

  /** @returns per run its state and last number, and the number of open runs that the gateway follows */
  async attend(
    runs: [id: string, taken: number, mode: 'i' | 'o'][],
    by = 'g1',
    number = ++this.#number,
  ): Promise<Reply[]> {
    const reply = (await this.run('attend', by, number, LEASE, ...runs.flat())) as [number, Reply[], number];
    return reply[0] ? ['stale'] : [reply[1], reply[2]];
  }

  async renew(worker: string, ...held: [id: string, token: string][]): Promise<Reply[]> {
    const [, answers] = (await this.run('renew', worker, LEASE, 1, 'app', ...held.flat())) as [number, Reply[]];
    return answers;
  }

  /** @returns gone, settled, busy or begun */
  async begin(id: string, attempt: number, token: string, lease = 20_000): Promise<Reply> {
    const [answer] = (await this.run('delivery-begin', lease, ...ENVELOPE_PIECES, id, attempt, token)) as Reply[][];
    return answer?.[0] as Reply;
  }

  /** @returns 1 for recorded, 0 for superseded */
  async recordAttempt(id: string, attempt: number, token: string, next: string, at: number | '' = ''): Promise<Reply> {
    const record = [id, attempt, token, `{"attempt":${attempt}`, next, at, 0];
    const [answer] = (await this.run('delivery-record', HANDOVER, ...record)) as Reply[];
    return answer as Reply;
  }

  /** @returns idle, ended runs with a due webhook, overdue deliveries, number of ended runs */
  async reap(): Promise<[idle: number, due: Reply[], overdue: Reply[], ended: number]> {
    return (await this.run('reap', 5000, LEASE, 30_000, HANDOVER, 200, 1000)) as [number, Reply[], Reply[], number];
  }

  /** Moves the clock in small steps and reaps after each, so that no pause of Redis is assumed. */
  async pass(ms: number): Promise<void> {
    await this.reap();
    for (let left = ms; left > 0; left -= 4000) {
      this.advance(Math.min(left, 4000));
      await this.reap();
    }
  }

  async record(id: string): Promise<Record<string, string>> {
    return this.client.hgetall(`${this.prefix}run:${id}`);
  }

  /** Returns the end of a run as one word: its state, or its error's code. */
  async fate(id: string): Promise<string | undefined> {
    const { state, error } = await this.record(id);
    return error ? (JSON.parse(error) as { code: string }).code : state;
  }
}

/** Opens a Redis for the tests of a file. Calls `use` before each test, with a store of its own. */
export function steppedStores(use: (store: SteppedStore) => unknown): void {
  let server: SteppedStore;
  beforeAll(async () => {
    server = await SteppedStore.open();
  });
  beforeEach(async () => {
    await use(server.fresh());
  });
  afterAll(() => server.close());
}
