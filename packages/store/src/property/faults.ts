// Injects faults between a service and Redis: lost replies, resent, repeated and overtaken calls, and lost messages.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type ScriptName, scriptSource, scriptText } from '../script-files.ts';

export const scripts = [
  'accept',
  'take',
  'append',
  'head',
  'reserve',
  'end',
  'cancel',
  'renew',
  'follow',
  'unfollow',
  'attend',
  'reap',
] as const satisfies readonly ScriptName[];

/** Scripts that may carry a planted bug. The test itself sends the sweeps that make room, and they meet no faults. */
export const plantable = [...scripts, 'sweep'] as const satisfies readonly ScriptName[];

/**
 * - `lost`: executed, but the caller gets a connection error
 * - `resent`: executed, its reply lost, executed again (as ioredis does after a reconnect), with later calls in between
 * - `repeated`: executed once more some time after its answer
 * - `delayed`: held back until later calls have overtaken the call
 */
export type CallFault = 'lost' | 'resent' | 'repeated' | 'delayed';

type Executed = (name: ScriptName, reply: Buffer, sentAt: number) => void;
type Listener = (channel: Buffer, message: Buffer) => void;

/** The faults of one round. All connections of the round share them. */
export class Faults {
  readonly #coming = new Map<ScriptName, { fault: CallFault; ms: number }[]>();
  readonly #nameOf = new Map<string, ScriptName>();
  readonly #late = new Set<Promise<unknown>>();
  /** Replaces the share that gateways write. */
  share: number | undefined;
  /** Gateways write no share now. */
  #sharesHeld = false;
  /** Shares that gateways are writing. */
  readonly #shareWrites = new Set<Promise<unknown>>();
  #swallow: { count: number; only: 'all' | 'ends' } = { count: 0, only: 'all' };

  readonly #planted: ReadonlyMap<ScriptName, string>;

  /** @param planted scripts that replace the real scripts */
  constructor(planted: ReadonlyMap<ScriptName, string>) {
    this.#planted = planted;

    for (const name of plantable) {
      const text = scriptText(scriptSource(name));
      this.#nameOf.set(text, name).set(createHash('sha1').update(text).digest('hex'), name);
    }
  }

  /** Lets the next call of the script meet the fault, from any caller. */
  strike(script: ScriptName, fault: CallFault, ms: number): void {
    this.#coming.set(script, [...(this.#coming.get(script) ?? []), { fault, ms }]);
  }

  /** Loses the next publications: all of them, or only those of a run's end. */
  swallowMessages(count: number, only: 'all' | 'ends'): void {
    this.#swallow = { count, only };
  }

  /** Stops new faults. Resolves when the faults under way are over. */
  async calm(): Promise<void> {
    this.#coming.clear();
    this.#swallow.count = 0;
    while (this.#late.size > 0) await Promise.allSettled([...this.#late]);
  }

  /**
   * Returns a connection for commands. Its script calls meet the faults.
   *
   * @param executed called after each execution of a script, with its reply and the time at which it was sent (`performance.now()`)
   */
  commands(client: Redis, executed: Executed = () => {}): Redis {
    return new Proxy(client, {
      get: (target, key) => {
        if (key === 'callBuffer') return (...args: string[]) => this.#call(target, args, executed);
        if (key === 'set') return (name: string, ...args: [string]) => this.#set(target, name, args);
        const value: unknown = Reflect.get(target, key);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  /** Lets gateways write no share while `set` runs. Their earlier writes are over before. Afterwards they write the share that `set` returns. */
  async setShare(set: () => Promise<number>): Promise<void> {
    this.#sharesHeld = true;
    await Promise.allSettled([...this.#shareWrites]);
    this.share = await set();
    this.#sharesHeld = false;
  }

  #set(client: Redis, name: string, [value, ...more]: [string, ...string[]]): Promise<unknown> {
    if (!name.endsWith(':share')) return client.set(name, ...([value, ...more] as [string]));
    if (this.#sharesHeld) return Promise.resolve('OK');
    const share = this.share === undefined ? value : `${this.share} 0`;
    const write = client.set(name, ...([share, ...more] as [string]));
    this.#shareWrites.add(write);
    const done = (): void => void this.#shareWrites.delete(write);
    write.then(done, done);
    return write;
  }

  /** Returns a subscribing connection that loses messages. */
  subscriber(client: Redis): Redis {
    const wrapped = new Map<Listener, Listener>();
    return new Proxy(client, {
      get: (target, key, self) => {
        const value: unknown = Reflect.get(target, key);
        if (key !== 'on' && key !== 'off') return typeof value === 'function' ? value.bind(target) : value;
        return (event: string, listener: Listener) => {
          let heard = wrapped.get(listener);
          if (!heard) {
            heard = (channel, message) => {
              if (!(Buffer.isBuffer(message) && this.#swallows(message))) listener(channel, message);
            };
            wrapped.set(listener, heard);
          }
          target[key](event, heard);
          return self;
        };
      },
    });
  }

  #swallows(message: Buffer): boolean {
    if (this.#swallow.count === 0) return false;
    if (this.#swallow.only === 'ends' && !/^[ex] /m.test(message.toString('latin1'))) return false;
    this.#swallow.count--;
    return true;
  }

  async #call(client: Redis, args: string[], executed: Executed): Promise<unknown> {
    const [command, script, ...rest] = args as [string, string, ...string[]];
    const name = this.#nameOf.get(script);
    const planted = name && this.#planted.get(name);
    const send = async (): Promise<unknown> => {
      const sentAt = performance.now();
      const reply = planted
        ? await client.callBuffer('EVAL', planted, ...rest)
        : await client.callBuffer(command, script, ...rest);
      if (name) executed(name, reply as Buffer, sentAt);
      return reply;
    };
    const met = name && this.#coming.get(name)?.shift();
    switch (met?.fault) {
      case 'lost':
        await send();
        throw new Error('Connection is closed.');
      case 'resent':
        await send();
        await this.#later(sleep(met.ms));
        return send();
      case 'repeated': {
        const reply = await send();
        void this.#later(sleep(met.ms).then(send)).catch(() => undefined);
        return reply;
      }
      case 'delayed':
        await this.#later(sleep(met.ms));
        return send();
      case undefined:
        return send();
    }
  }

  #later<T>(work: Promise<T>): Promise<T> {
    this.#late.add(work);
    const done = (): void => void this.#late.delete(work);
    work.then(done, done);
    return work;
  }
}
