// Runs the store's Lua scripts. A script is called by its hash, and sent again if Redis has forgotten it (restart, SCRIPT FLUSH).
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { projectPrefix, withKeys } from './keys.ts';
import { packArguments, type ScriptArgument, type ScriptReply, unpackReply } from './message-pack.ts';
import { ScriptFaults } from './script-faults.ts';

/** The files in `lua/`. The header of each file documents its keys, arguments and return codes. */
export type ScriptName =
  | 'accept'
  | 'take'
  | 'append'
  | 'head'
  | 'reserve'
  | 'end'
  | 'cancel'
  | 'go-on'
  | 'renew'
  | 'follow'
  | 'result'
  | 'unfollow'
  | 'attend'
  | 'reap'
  | 'sweep'
  | 'list'
  | 'log'
  | 'delivery-begin'
  | 'delivery-record'
  | 'delivery-redeliver'
  | 'hosts'
  | 'host-look'
  | 'ready'
  | 'forget-project';

export type { ScriptArgument, ScriptReply };

const folder = new URL('../lua/', import.meta.url);

/** Returns a script with its shared parts. */
export function scriptSource(name: ScriptName): string {
  const lines = readFileSync(new URL(`${name}.lua`, folder), 'utf8').split('\n');
  return lines
    .map((line) => {
      const part = /^--@include (\S+)$/.exec(line);
      return part ? readFileSync(new URL(`shared/${part[1]}.lua`, folder), 'utf8') : line;
    })
    .join('\n');
}

/** Returns a script's text for Redis: its first line (flags), then the keys, then the other lines without comments. */
export function scriptText(source: string): string {
  const [flags, ...lines] = source.split('\n');
  return `${flags}\n${withKeys(lines.filter((line) => !/^\s*--/.test(line)).join('\n'))}`;
}

const loaded = new Map<ScriptName, { text: string; sha: string }>();

function script(name: ScriptName): { text: string; sha: string } {
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
 * @returns the raw reply: strings as Buffers, integers as numbers
 * @throws the error of the connection or of Redis
 */
export function runScript(
  redis: Redis,
  name: ScriptName,
  project: string,
  args: readonly ScriptArgument[],
): Promise<unknown> {
  return runScriptAt(redis, name, projectPrefix(project), args);
}

/** Runs a script as `runScript` does, on the keys with this prefix. */
export async function runScriptAt(
  redis: Redis,
  name: ScriptName,
  prefix: string,
  args: readonly ScriptArgument[],
): Promise<ScriptReply> {
  const { sha, text } = script(name);
  const packed = packArguments(args);
  const faults = ScriptFaults.of(redis);
  try {
    const reply = await redis.callBuffer('EVALSHA', sha, 1, prefix, packed).catch((error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return redis.callBuffer('EVAL', text, 1, prefix, packed);
    });
    faults.succeeded(name);
    return unpackReply(reply as Buffer);
  } catch (error) {
    faults.failed(name, error);
    throw error;
  }
}
