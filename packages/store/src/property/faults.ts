// What can go wrong between a service and Redis, on command: replies lost, calls resent, repeated and overtaken, messages swallowed.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type ScriptName, scriptSource, scriptText } from '../scripts.ts';

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

/** Scripts that a bug may be planted into. A sweep that makes room is the test's own, and meets no faults. */
export const plantable = [...scripts, 'sweep'] as const satisfies readonly ScriptName[];

/**
 * - `lost`: executed, but its caller is told that the connection broke
 * - `resent`: executed, its reply lost, executed again (as ioredis does after a reconnect), later calls in between
 * - `repeated`: executed once more some time after its answer
 * - `delayed`: held back, so that later calls overtake it
 */
export type CallFault = 'lost' | 'resent' | 'repeated' | 'delayed';

type Listener = (channel: Buffer, message: Buffer) => void;

/** The faults of one round, shared by all its connections. */
export class Faults {
  private readonly coming = new Map<ScriptName, { fault: CallFault; ms: number }[]>();
  private readonly nameOf = new Map<string, ScriptName>();
  private readonly late = new Set<Promise<unknown>>();
  /** Replaces the share that gateways write. */
  share: number | undefined;
  private swallow: { count: number; only: 'all' | 'ends' } = { count: 0, only: 'all' };

  /** @param planted scripts to be run in place of the real ones */
  constructor(private readonly planted: ReadonlyMap<ScriptName, string>) {
    for (const name of plantable) {
      const text = scriptText(scriptSource(name));
      this.nameOf.set(text, name).set(createHash('sha1').update(text).digest('hex'), name);
    }
  }

  /** The next call of that script, by whomever, meets this. */
  strike(script: ScriptName, fault: CallFault, ms: number): void {
    this.coming.set(script, [...(this.coming.get(script) ?? []), { fault, ms }]);
  }

  /** The next publications are lost: all kinds, or only those that tell of a run's end. */
  swallowMessages(count: number, only: 'all' | 'ends'): void {
    this.swallow = { count, only };
  }

  /** No new faults; resolves when those under way are through. */
  async calm(): Promise<void> {
    this.coming.clear();
    this.swallow.count = 0;
    while (this.late.size > 0) await Promise.allSettled([...this.late]);
  }

  /** A connection for commands whose scripts meet these faults. */
  commands(client: Redis): Redis {
    return new Proxy(client, {
      get: (target, key) => {
        if (key === 'callBuffer') return (...args: string[]) => this.call(target, args);
        if (key === 'set') return (name: string, ...args: [string]) => target.set(name, ...this.heldTo(name, args));
        const value: unknown = Reflect.get(target, key);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  private heldTo(name: string, [value, ...more]: [string, ...string[]]): [string] {
    return [name.endsWith(':share') && this.share !== undefined ? `${this.share} 0` : value, ...more] as [string];
  }

  /** A subscribing connection that loses messages. */
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
              if (!(Buffer.isBuffer(message) && this.swallows(message))) listener(channel, message);
            };
            wrapped.set(listener, heard);
          }
          target[key](event, heard);
          return self;
        };
      },
    });
  }

  private swallows(message: Buffer): boolean {
    if (this.swallow.count === 0) return false;
    if (this.swallow.only === 'ends' && !/^[ex] /m.test(message.toString('latin1'))) return false;
    this.swallow.count--;
    return true;
  }

  private async call(client: Redis, args: string[]): Promise<unknown> {
    const [command, script, ...rest] = args as [string, string, ...string[]];
    const name = this.nameOf.get(script);
    const planted = name && this.planted.get(name);
    const send = (): Promise<unknown> =>
      planted ? client.callBuffer('EVAL', planted, ...rest) : client.callBuffer(command, script, ...rest);
    const met = name && this.coming.get(name)?.shift();
    switch (met?.fault) {
      case 'lost':
        await send();
        throw new Error('Connection is closed.');
      case 'resent':
        await send();
        await this.later(sleep(met.ms));
        return send();
      case 'repeated': {
        const reply = await send();
        void this.later(sleep(met.ms).then(send)).catch(() => undefined);
        return reply;
      }
      case 'delayed':
        await this.later(sleep(met.ms));
        return send();
      case undefined:
        return send();
    }
  }

  private later<T>(work: Promise<T>): Promise<T> {
    this.late.add(work);
    const done = (): void => void this.late.delete(work);
    work.then(done, done);
    return work;
  }
}
