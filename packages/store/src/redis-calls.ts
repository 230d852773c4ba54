// Calls to Redis: within a time limit, scripts by their hash, and the calls of one tick as one. A script that Redis has forgotten (restart,
// SCRIPT FLUSH) is sent again.
import { createHash } from 'node:crypto';
import { ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { projectPrefix } from './keys.ts';
import { packArguments, type ScriptArgument, type ScriptReply, unpackReply } from './message-pack.ts';
import { type ScriptName, scriptSource, scriptText } from './script-files.ts';
import { storeError } from './store-error.ts';

/**
 * Returns the promise's value. Rejects with `unavailable` after `ms`, or with `storeError` if Redis refused or lost the call.
 * The call itself continues, and a late answer is dropped.
 */
export function withinLimit<T>(call: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // If the process stood still, the answer may have arrived long ago. It is read in this turn of the loop, before the immediates.
      setImmediate(() => reject(new ServiceError('unavailable', 'The run store did not answer in time.')));
    }, ms);
    call.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (cause: unknown) => {
        clearTimeout(timer);
        reject(storeError(cause));
      },
    );
  });
}

/** A script with the types of its boundary. */
export interface Script<Args, Reply> {
  readonly name: ScriptName;
  readonly encode: (args: Args) => readonly ScriptArgument[];
  /** @throws TypeError if the reply has another form */
  readonly decode: (reply: ScriptReply) => Reply;
}

const loaded = new Map<ScriptName, { text: string; sha: string }>();

function loadedScript(name: ScriptName): { text: string; sha: string } {
  let found = loaded.get(name);
  if (!found) {
    const text = scriptText(scriptSource(name));
    found = { text, sha: createHash('sha1').update(text).digest('hex') };
    loaded.set(name, found);
  }
  return found;
}

/**
 * Runs a script on one project's slot.
 *
 * @throws the error of the connection or of Redis
 */
export function runScript<Args, Reply>(
  redis: Redis,
  script: Script<Args, Reply>,
  project: string,
  args: Args,
): Promise<Reply> {
  return runScriptAt(redis, script, projectPrefix(project), args);
}

/** Runs a script as `runScript` does, on the keys with this prefix. */
export async function runScriptAt<Args, Reply>(
  redis: Redis,
  { name, encode, decode }: Script<Args, Reply>,
  prefix: string,
  args: Args,
): Promise<Reply> {
  const { sha, text } = loadedScript(name);
  const packed = packArguments(encode(args));
  const faults = ScriptFaults.of(redis);
  try {
    const reply = await redis.callBuffer('EVALSHA', sha, 1, prefix, packed).catch((error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return redis.callBuffer('EVAL', text, 1, prefix, packed);
    });
    const answer = decode(unpackReply(reply as Buffer));
    faults.succeeded(name);
    return answer;
  } catch (error) {
    faults.failed(name, error);
    throw error;
  }
}

/** Failures in a row after which a script counts as broken. One or two failures may come from a single project with a damaged key. */
const BROKEN_AFTER = 3;
/** Time after which a fault is forgotten: a service that is not ready gets no calls, so no success could end the fault. */
const FORGOTTEN_AFTER_MS = 10_000;

interface Fault {
  readonly inARow: number;
  /** Time of the last failure, monotonic milliseconds. */
  readonly at: number;
  readonly message: string;
}

/** Contract 6: the scripts of one client that fail by a fault of the service, for `/readyz`. Redis still answers a PING then. A success of any project ends a fault. */
export class ScriptFaults {
  static readonly #byClient = new WeakMap<Redis, ScriptFaults>();
  readonly #faults = new Map<ScriptName, Fault>();

  static of(client: Redis): ScriptFaults {
    let faults = ScriptFaults.#byClient.get(client);
    if (!faults) {
      faults = new ScriptFaults();
      ScriptFaults.#byClient.set(client, faults);
    }
    return faults;
  }

  succeeded(name: ScriptName): void {
    if (this.#faults.size > 0) this.#faults.delete(name);
  }

  /** Records a failure. Outages do not count. Adds the script's name to the message, because Redis names the script only by its hash. */
  failed(name: ScriptName, error: unknown): void {
    if (!(error instanceof Error) || storeError(error).code !== 'internal') return;
    error.message += ` (in the script ${name})`;
    const inARow = (this.#faults.get(name)?.inARow ?? 0) + 1;
    this.#faults.set(name, { inARow, at: performance.now(), message: error.message });
  }

  /** Returns the message of the first of `names` that is broken. */
  broken(names: readonly ScriptName[]): string | undefined {
    for (const name of names) {
      const fault = this.#faults.get(name);
      if (!fault || performance.now() - fault.at > FORGOTTEN_AFTER_MS) continue;
      if (fault.inARow >= BROKEN_AFTER) return fault.message;
    }
    return undefined;
  }
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Limits of one script call, so that no single call holds Redis for long. */
const MAX_ITEMS = 256;
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Gathers the items of one turn of the event loop and sends them as one script call per project: +40 % calls/s over a call per run. The
 * client's auto-pipelining does not reach this.
 */
export class TickBatch<Item, Answer> {
  #waiting = new Map<string, Waiting<Item, Answer>[]>();
  #scheduled = false;

  readonly #send: (project: string, items: Item[]) => Promise<readonly Answer[]>;
  readonly #bytesOf: (item: Item) => number;

  /**
   * @param send sends one script call and returns the answers in the order of its items
   * @param bytesOf returns the payload size of an item
   */
  constructor(send: (project: string, items: Item[]) => Promise<readonly Answer[]>, bytesOf: (item: Item) => number) {
    this.#send = send;
    this.#bytesOf = bytesOf;
  }

  /** Returns the answer to this item. Rejects with the error of its call. */
  add(project: string, item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const entry = { item, resolve, reject };
      const list = this.#waiting.get(project);
      if (list) list.push(entry);
      else this.#waiting.set(project, [entry]);
      if (!this.#scheduled) {
        this.#scheduled = true;
        setImmediate(() => this.#flush());
      }
    });
  }

  #flush(): void {
    this.#scheduled = false;
    const batches = this.#waiting;
    this.#waiting = new Map();
    for (const [project, list] of batches) {
      let from = 0;
      let bytes = 0;
      for (let at = 0; at < list.length; at++) {
        const size = this.#bytesOf((list[at] as Waiting<Item, Answer>).item);
        if (at > from && (at - from >= MAX_ITEMS || bytes + size > MAX_BYTES)) {
          void this.#call(project, list.slice(from, at));
          from = at;
          bytes = 0;
        }
        bytes += size;
      }
      void this.#call(project, from === 0 ? list : list.slice(from));
    }
  }

  async #call(project: string, list: Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(
        project,
        list.map((entry) => entry.item),
      );
      for (let at = 0; at < list.length; at++) list[at]?.resolve(answers[at] as Answer);
    } catch (error) {
      for (const entry of list) entry.reject(error);
    }
  }
}

/** The store's clock as this process knows it: the last time that Redis sent, moved on by this machine's monotonic clock. */
export class StoreClock {
  #storeMs = Number.NaN;
  #receivedAt = 0;

  /** Reads the clock of Redis. */
  async read(redis: Redis): Promise<void> {
    const [seconds, micros] = await redis.time();
    this.set(Number(seconds) * 1000 + Number(micros) / 1000);
  }

  /** @param storeMs the store's time in an answer that has just arrived */
  set(storeMs: number): void {
    this.#storeMs = storeMs;
    this.#receivedAt = performance.now();
  }

  get known(): boolean {
    return !Number.isNaN(this.#storeMs);
  }

  /** The store's time now, in ms. It is behind by the network delay at most. */
  now(): number {
    return Math.round(this.#storeMs + performance.now() - this.#receivedAt);
  }
}
