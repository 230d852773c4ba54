// Calls of the store's Lua scripts: by their hash, with one MessagePack value each way (github.com/msgpack/msgpack, spec.md). A value per
// argument would cost Redis and its client more than all other work of the call (docs/decisions/0016-one-value-each-way.md).
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { projectPrefix } from './keys.ts';
import { type ScriptName, scriptSource, scriptText } from './script-files.ts';
import { storeError } from './store-error.ts';

export type ScriptArgument = string | number | Buffer;

/** Integers are numbers. Lua's `false`, and nil in a list, are null. */
export type ScriptReply = number | Buffer | null | ScriptReply[];

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
 * Runs a script on one project's slot. If Redis has forgotten the script (restart, SCRIPT FLUSH), the whole text is sent.
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

/** Longer strings are measured and written by native code. For shorter strings the native call costs more than the bytes. */
const SHORT = 64;
const ASCII_END = 0x80;
/** A UTF-16 unit takes at most three bytes of UTF-8. */
const UTF8_BYTES = 3;
/** The longest header: a type and a length of four bytes. */
const HEADER_BYTES = 5;

function packedBytes(argument: string | Buffer): number {
  if (typeof argument !== 'string') return HEADER_BYTES + argument.length;
  return HEADER_BYTES + (argument.length <= SHORT ? argument.length * UTF8_BYTES : Buffer.byteLength(argument));
}

/** Writes the header of `count` elements, of a list if `list` is true, else of a string. Returns the place after the header. */
function header(packed: Buffer, at: number, count: number, list: boolean): number {
  if (count < (list ? 16 : 32)) {
    packed[at] = (list ? 0x90 : 0xa0) | count;
    return at + 1;
  }
  if (!list && count < 0x100) {
    packed[at] = 0xd9;
    packed[at + 1] = count;
    return at + 2;
  }
  if (count < 0x10000) {
    packed[at] = list ? 0xdc : 0xda;
    packed[at + 1] = count >> 8;
    packed[at + 2] = count;
    return at + 3;
  }
  packed[at] = list ? 0xdd : 0xdb;
  packed.writeUInt32BE(count, at + 1);
  return at + HEADER_BYTES;
}

/** Writes a string of at most 31 ASCII characters, the usual case. Returns the place after the string, or -1 for another character. */
function ascii(packed: Buffer, at: number, text: string): number {
  const { length } = text;
  let to = header(packed, at, length, false);
  for (let n = 0; n < length; n++) {
    const code = text.charCodeAt(n);
    if (code >= ASCII_END) return -1;
    packed[to++] = code;
  }
  return to;
}

function string(packed: Buffer, at: number, text: string): number {
  if (text.length <= SHORT) {
    const to = ascii(packed, at, text);
    if (to >= 0) return to;
  }
  const to = header(packed, at, Buffer.byteLength(text), false);
  return to + packed.write(text, to);
}

/**
 * Packs a list of strings, which is the form of a script's arguments: numbers as decimals, Buffers as bytes. Redis 7.0 reads bytes only as
 * MessagePack's text type.
 */
export function packArguments(list: readonly ScriptArgument[]): Buffer {
  const texts: (string | Buffer)[] = new Array(list.length);
  let size = HEADER_BYTES;
  for (let n = 0; n < list.length; n++) {
    const argument = list[n] as ScriptArgument;
    const text = typeof argument === 'number' ? String(argument) : argument;
    texts[n] = text;
    size += packedBytes(text);
  }
  const packed = Buffer.allocUnsafe(size);
  let at = header(packed, 0, texts.length, true);
  for (const text of texts) {
    if (typeof text === 'string') {
      at = string(packed, at, text);
    } else {
      at = header(packed, at, text.length, false);
      at += text.copy(packed, at);
    }
  }
  return packed.subarray(0, at);
}

/** Values that many runs of one script call share. Each kind of values is sent once, and each run names its kind. */
export class Kinds {
  /** The values of all kinds, in one flat list. */
  readonly values: ScriptArgument[] = [];
  readonly #numbers = new Map<string, number>();

  get count(): number {
    return this.#numbers.size;
  }

  /** Returns the number, from 1, of the kind with these values. Every kind has equally many values, and none is a Buffer. */
  number(values: readonly (string | number)[]): number {
    const key = values.join('\n');
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#numbers.size + 1;
    this.#numbers.set(key, number);
    this.values.push(...values);
    return number;
  }
}

/** Unpacks the lists, strings, whole numbers and booleans that Redis' `cmsgpack.pack` writes. */
class Unpacking {
  #at = 0;

  readonly #packed: Buffer;

  constructor(packed: Buffer) {
    this.#packed = packed;
  }

  value(): ScriptReply {
    const packed = this.#packed;
    const type = packed[this.#at++] as number;
    if (type < 0x80) return type;
    if (type >= 0xe0) return type - 0x100;
    if (type >= 0xa0 && type < 0xc0) return this.#bytes(type & 0x1f);
    if (type >= 0x90 && type < 0xa0) return this.#list(type & 0x0f);
    switch (type) {
      case 0xc0:
      case 0xc2:
        return null;
      case 0xc3:
        return 1;
      case 0xca:
        return Math.trunc(packed.readFloatBE(this.#skip(4)));
      case 0xcb:
        return Math.trunc(packed.readDoubleBE(this.#skip(8)));
      case 0xcc:
        return packed.readUInt8(this.#skip(1));
      case 0xcd:
        return packed.readUInt16BE(this.#skip(2));
      case 0xce:
        return packed.readUInt32BE(this.#skip(4));
      case 0xcf:
        return Number(packed.readBigUInt64BE(this.#skip(8)));
      case 0xd0:
        return packed.readInt8(this.#skip(1));
      case 0xd1:
        return packed.readInt16BE(this.#skip(2));
      case 0xd2:
        return packed.readInt32BE(this.#skip(4));
      case 0xd3:
        return Number(packed.readBigInt64BE(this.#skip(8)));
      case 0xd9:
        return this.#bytes(packed.readUInt8(this.#skip(1)));
      case 0xda:
        return this.#bytes(packed.readUInt16BE(this.#skip(2)));
      case 0xdb:
        return this.#bytes(packed.readUInt32BE(this.#skip(4)));
      case 0xdc:
        return this.#list(packed.readUInt16BE(this.#skip(2)));
      case 0xdd:
        return this.#list(packed.readUInt32BE(this.#skip(4)));
      default:
        throw new Error(`a script's reply has the unsupported MessagePack type 0x${type.toString(16)}`);
    }
  }

  /** Moves on by `size` bytes and returns the place before. */
  #skip(size: number): number {
    const at = this.#at;
    this.#at += size;
    return at;
  }

  #bytes(length: number): Buffer {
    const at = this.#skip(length);
    return this.#packed.subarray(at, this.#at);
  }

  #list(count: number): ScriptReply[] {
    const list: ScriptReply[] = new Array(count);
    for (let n = 0; n < count; n++) list[n] = this.value();
    return list;
  }
}

/** Unpacks a script's reply. Strings are slices of `packed`. @throws Error if `packed` is no reply */
export function unpackReply(packed: Buffer): ScriptReply {
  return new Unpacking(packed).value();
}

const unexpected = (value: ScriptReply | undefined, kind: string): TypeError =>
  new TypeError(`a script's reply has ${value === undefined ? 'nothing' : typeof value} in the place of ${kind}`);

/** Reads a list of a reply. @throws TypeError */
export function listIn(value: ScriptReply | undefined): ScriptReply[] {
  if (!Array.isArray(value)) throw unexpected(value, 'a list');
  return value;
}

/** @throws TypeError */
export function numberIn(value: ScriptReply | undefined): number {
  if (typeof value !== 'number') throw unexpected(value, 'a number');
  return value;
}

/** @throws TypeError */
export function bytesIn(value: ScriptReply | undefined): Buffer {
  if (!Buffer.isBuffer(value)) throw unexpected(value, 'bytes');
  return value;
}

/** @throws TypeError */
export const textIn = (value: ScriptReply | undefined): string => bytesIn(value).toString();

/** Reads one of the codes of a script. @throws TypeError */
export function codeIn<Code extends string>(value: ScriptReply | undefined, codes: readonly Code[]): Code {
  const text = textIn(value);
  for (const code of codes) if (code === text) return code;
  throw new TypeError(`a script's reply has the unknown code '${text}'`);
}
