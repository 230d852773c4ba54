// Redis MONITOR: reports the Lua files whose scripts a service has run.
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { redisAddress } from '@inference-proxy/platform';
import { Redis } from 'ioredis';

interface LuaFile {
  readonly path: string;
  readonly isScript: boolean;
  /** Names of the files that this file includes. */
  readonly includes: readonly string[];
  /** The code between the includes, without comments. A script contains all of these texts. */
  readonly parts: readonly string[];
}

/** Watches the scripts of one service. */
export class RanScripts {
  readonly #redis: Redis;
  readonly #monitor: Redis;
  readonly #files: readonly LuaFile[];
  /** Script texts by their SHA-1. */
  readonly #texts = new Map<string, string>();
  readonly #ran = new Set<string>();

  private constructor(redis: Redis, monitor: Redis, files: readonly LuaFile[]) {
    this.#redis = redis;
    this.#monitor = monitor;
    this.#files = files;
    monitor.on('monitor', (_time: string, [command = '', script = '']: string[], source: string) => {
      const name = command.toUpperCase();
      if (name !== 'EVAL' && name !== 'EVALSHA') return;
      const text = unescaped(script);
      const sha = name === 'EVAL' ? createHash('sha1').update(text).digest('hex') : script;
      if (name === 'EVAL') this.#texts.set(sha, normalized(text));
      if (!source.startsWith('unix:')) this.#ran.add(sha);
    });
  }

  /**
   * Starts to watch. The service is the one client that uses TCP; all others use the Unix socket.
   *
   * @param url of Redis, for a user who may run all commands
   * @param lua folder of the Lua files
   */
  static async start(url: string, lua: string): Promise<RanScripts> {
    const redis = new Redis(redisAddress(url));
    const files = globSync('**/*.lua', { cwd: lua }).map((file) => luaFile(join(lua, file)));
    return new RanScripts(redis, await redis.monitor(), files);
  }

  /** Removes all scripts from Redis. The gateway then sends each script again as text. */
  async forget(): Promise<void> {
    await this.#redis.script('FLUSH');
    this.#ran.clear();
  }

  /** Returns the paths of the Lua files whose scripts the service has run since `forget`. */
  take(): ReadonlySet<string> {
    const texts = [...this.#ran].map((sha) => this.#texts.get(sha) ?? '');
    const ran = new Set<string>();
    const add = (file: LuaFile): void => {
      ran.add(file.path);
      for (const name of file.includes) for (const part of this.#files) if (basename(part.path) === name) add(part);
    };
    for (const file of this.#files) {
      // Only scripts have a first line with flags. Parts are in a script if the script includes them.
      if (file.isScript && texts.some((text) => file.parts.every((part) => text.includes(part)))) add(file);
    }
    return ran;
  }

  close(): void {
    this.#monitor.disconnect();
    this.#redis.disconnect();
  }
}

function luaFile(path: string): LuaFile {
  const text = readFileSync(path, 'utf8');
  const parts = text.split(/^--@include .*$/m).map((part) => normalized(part).replace(/^#!.*\n?/, ''));
  return {
    path,
    isScript: text.startsWith('#!'),
    includes: [...text.matchAll(/^--@include ([\w-]+)/gm)].map(([, name]) => `${name}.lua`),
    parts: parts.filter((part) => part !== ''),
  };
}

/** Returns code without comments and empty lines, and with the same text for every key. */
const normalized = (code: string): string =>
  code
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('--'))
    .join('\n')
    .replace(/\bK\.\w+|P\.\.'[^']*'/g, 'KEY');

/** Returns a text without the escapes of MONITOR. */
const unescaped = (text: string): string =>
  text.replace(/\\(x[0-9a-f]{2}|.)/g, (_, code: string) => {
    if (code.length > 1) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return { n: '\n', t: '\t', r: '\r' }[code] ?? code;
  });
