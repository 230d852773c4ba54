// Runs the store's Lua scripts. A script is called by its hash, and sent again if Redis has forgotten it (restart, SCRIPT FLUSH).
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { projectPrefix, withKeys } from './keys.ts';
import { packArguments, type ScriptArgument, type ScriptReply, unpackReply } from './message-pack.ts';
import { withParts } from './script-parts.ts';
import { storeError } from './store-error.ts';

/** The scripts and their folders. The header of each file documents its keys, arguments and return codes. */
const FOLDERS = {
  accept: 'runs',
  cancel: 'runs',
  detach: 'runs',
  follow: 'runs',
  unfollow: 'runs',
  attend: 'runs',
  list: 'runs',
  result: 'runs',
  reap: 'runs',
  sweep: 'runs',
  'forget-project': 'runs',
  take: 'workers',
  append: 'workers',
  head: 'workers',
  reserve: 'workers',
  end: 'workers',
  renew: 'workers',
  log: 'workers',
  'delivery-begin': 'deliveries',
  'delivery-record': 'deliveries',
  'delivery-redeliver': 'deliveries',
  hosts: 'hosts',
  'host-look': 'hosts',
  ready: '.',
} as const;

export type ScriptName = keyof typeof FOLDERS;

export const scriptNames = Object.keys(FOLDERS) as ScriptName[];

/** A script with the types of its boundary. */
export interface Script<Args, Reply> {
  readonly name: ScriptName;
  readonly encode: (args: Args) => readonly ScriptArgument[];
  /** @throws TypeError if the reply has another form */
  readonly decode: (reply: ScriptReply) => Reply;
}

/** Lua files are read from `src`, also by the compiled code. */
const folder = new URL('../src/', import.meta.url);
const fileOf = (path: string): string => readFileSync(new URL(path, folder), 'utf8');

/** Returns a script with the definitions that it includes. */
export function scriptSource(name: ScriptName): string {
  return withParts(fileOf(`${FOLDERS[name]}/${name}.lua`), (part) => fileOf(`parts/${part}.lua`));
}

/** Returns a script's text for Redis: its first line (flags), then the keys, then the other lines without comments. */
export function scriptText(source: string): string {
  const [flags, ...lines] = source.split('\n');
  return `${flags}\n${withKeys(lines.filter((line) => !/^\s*--/.test(line)).join('\n'))}`;
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
