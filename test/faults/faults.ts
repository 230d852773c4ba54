// Everything that goes wrong, by name. Each ends by itself, and says when it did.
import { stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../client/until.ts';
import type { KillablePart } from '../stack/test-stack.ts';
import { withoutFlushes } from './flushed.ts';
import { PARTS, type Place } from './place.ts';
import { replicasOf } from './processes.ts';
import { rewritten } from './rewritten.ts';

export interface FaultOptions {
  /** One of several things that are alike; the short form takes the first, the soak any. */
  pick<T>(of: readonly T[]): T;
  /** The soak holds still for as long as the worst is promised to last. */
  readonly long: boolean;
}

export interface Fault {
  /** @returns when what was wrong had ended, `performance.now()`; absent: when this returned */
  run(place: Place, options: FaultOptions): Promise<number | undefined>;
  /** The last writes of Redis are gone. */
  readonly tailLost?: true;
  /** For the soak alone: it takes a minute. */
  readonly long?: true;
  /** What else is made whole again, after service has returned and before anything else goes wrong. */
  mended?(place: Place): Promise<void>;
}

const GATEWAYS: KillablePart[] = ['gateway-1', 'gateway-2'];
const WORKERS: KillablePart[] = ['worker-1', 'worker-2', 'worker-3'];
const DISPATCHERS: KillablePart[] = ['dispatcher-1', 'dispatcher-2'];

/** Longer than the shortened lease, so that what is frozen that long is believed dead. */
const FROZEN_MS = 8000;
const MINUTE_MS = 60_000;
const REDIS_STOPPED_MS = 10_000;
/** Of a bad network, and of a disk. */
const lasts = ({ long }: FaultOptions): Promise<void> => sleep(long ? 10_000 : 3000);
const DELAY_MS = 300;
const REPLIES_LOST = { is: 'replies-lost', oneIn: 20 } as const;
/** What a crash of a machine takes of the append-only file: some calls, and half of a command. */
const TAIL_BYTES = 5001;
/** A flush of a slow disk, and what is got done between two. */
const FLUSH_MS = 300;
const BETWEEN_FLUSHES_MS = 100;
const BURST = { n: 120, size: 200_000 };

const ended = async (place: Place, part: KillablePart, signal: NodeJS.Signals): Promise<number> => {
  const at = performance.now();
  const again = place.stack.kill(part, signal);
  place.load.more();
  await again;
  return at;
};

const killed = (parts: readonly KillablePart[]): Fault => ({
  run: (place, { pick }) => ended(place, pick(parts), 'SIGKILL'),
});

const stopped = (parts: readonly KillablePart[]): Fault => ({
  run: (place, { pick }) => ended(place, pick(parts), 'SIGTERM'),
});

const frozenFor = async (place: Place, part: KillablePart, ms: number): Promise<undefined> => {
  place.stack.pause(part);
  await sleep(ms);
  place.stack.resume(part);
};

const frozen = (parts: readonly KillablePart[]): Fault => ({
  run: (place, { pick, long }) => frozenFor(place, pick(parts), long ? MINUTE_MS : FROZEN_MS),
});

/** Between some services, or all, and Redis. */
const network = (trouble: Parameters<Place['network']>[0]): Fault => ({
  async run(place, options) {
    const { pick, long } = options;
    const parts = long ? pick([PARTS, GATEWAYS, WORKERS, DISPATCHERS, ['gateway-1'], ['worker-2']]) : PARTS;
    place.network(trouble, parts);
    await lasts(options);
    place.network({ is: 'none' });
    return undefined;
  },
});

/** Settings of Redis for a while. */
async function configured(
  place: Place,
  settings: Record<string, string>,
  during: () => Promise<unknown>,
): Promise<void> {
  const before: string[] = [];
  for (const [name, value] of Object.entries(settings)) {
    const [, had] = (await place.redis.config('GET', name)) as string[];
    before.push(name, String(had));
    await place.redis.config('SET', name, value);
  }
  try {
    await during();
  } finally {
    await place.redis.call('CONFIG', 'SET', ...before);
  }
}

/** Connections that listen. */
async function listeners(place: Place): Promise<string[]> {
  const list = String(await place.redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => String(id));
}

/** A gateway does not take what it listens to while a function says much, until Redis cuts it off: its reader has every item all the same. */
async function overflown(place: Place): Promise<undefined> {
  const gate = join(place.stack.marksDir, `burst-${performance.now()}`);
  const query = '?onDisconnect=continue';
  const { events } = await place.gateway('gateway-1').stream('steady/burst', { gate, ...BURST }, { query });
  if ((await events.next()) !== 'data: begun') throw new Error('the burst did not begin');
  const before = await listeners(place);
  await configured(place, { 'client-output-buffer-limit': 'pubsub 262144 0 0' }, async () => {
    place.network({ is: 'stalled' }, ['gateway-1']);
    await writeFile(gate, '');
    await until(async () => {
      const now = await listeners(place);
      return before.some((id) => !now.includes(id));
    });
    place.network({ is: 'none' });
  });
  const items = (await events.rest()).filter((event) => event !== ': keep-alive');
  const numbers = items.map((event) => Number(/^data: (\d+) x+$/.exec(event)?.[1]));
  const whole = numbers.length === BURST.n && numbers.every((number, at) => number === at);
  if (!whole) throw new Error(`of the burst came ${numbers.join(' ')}`);
  return undefined;
}

export const faults: Record<string, Fault> = {
  'a gateway is killed': killed(GATEWAYS),
  'a worker is killed': killed(WORKERS),
  'a dispatcher is killed': killed(DISPATCHERS),
  'functions’ processes are killed': {
    async run(place, { pick }) {
      const pids = await replicasOf(place.stack.pid(pick(WORKERS)), place.stack.appsDir);
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      return undefined;
    },
  },
  'a gateway is told to stop': stopped(GATEWAYS),
  'a worker is told to stop': stopped(WORKERS),
  'a dispatcher is told to stop': stopped(DISPATCHERS),
  'Redis is killed': {
    async run(place) {
      await withoutFlushes(place.redis);
      return ended(place, 'redis', 'SIGKILL');
    },
  },
  'Redis is killed and its last writes are lost': {
    tailLost: true,
    async run(place) {
      // Stopped first: nothing is written after what is cut off.
      place.stack.pause('redis');
      const file = await place.disk.appendOnlyFile();
      await truncate(file, Math.max(0, (await stat(file)).size - TAIL_BYTES));
      return ended(place, 'redis', 'SIGKILL');
    },
  },
  'Redis stands still': { run: (place) => frozenFor(place, 'redis', REDIS_STOPPED_MS) },
  'Redis stands still for a minute': { long: true, run: (place) => frozenFor(place, 'redis', MINUTE_MS) },
  'Redis forgets its scripts': { run: (place) => place.redis.script('FLUSH').then(() => undefined) },
  'Redis cuts all who listen': {
    run: (place) => place.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub').then(() => undefined),
  },
  'Redis cuts all who ask': {
    run: (place) => place.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes').then(() => undefined),
  },
  'Redis cuts off a gateway that takes nothing': { run: overflown },
  'Redis is out of memory': {
    async run(place, options) {
      await configured(place, { maxmemory: '1mb' }, () => lasts(options));
      return undefined;
    },
  },
  'Redis cannot write its file': {
    async run(place, options) {
      const pid = place.stack.pid('redis');
      await place.disk.limit(pid);
      await lasts(options);
      await place.disk.unlimit(pid);
      return undefined;
    },
  },
  'the disk is full': {
    async run(place, options) {
      // As after any time of work: a file that a rewrite began, which Redis leaves a hole in (docs/decisions/0019-the-file-is-rewritten.md).
      await rewritten(place.redis);
      const free = await place.disk.fill(place.stack.pid('redis'));
      await lasts(options);
      await free();
      return undefined;
    },
    mended: (place) => rewritten(place.redis),
  },
  // Redis flushes at every write, and as a slow disk would, something holds it for as long as a flush may take: there is no slow disk to be had
  // without rights over the machine.
  'the disk is slow': {
    async run(place, { long }) {
      await configured(place, { appendfsync: 'always' }, async () => {
        for (let flushes = long ? 25 : 8; flushes > 0; flushes--) {
          await frozenFor(place, 'redis', FLUSH_MS);
          await sleep(BETWEEN_FLUSHES_MS);
        }
      });
      return undefined;
    },
  },
  'the network is slow': network({ is: 'delayed', ms: DELAY_MS }),
  'the network cuts': network({ is: 'cut' }),
  'the network loses connections without a word': network({ is: 'half-open' }),
  'the network stalls': network({ is: 'stalled' }),
  'the network loses replies': network(REPLIES_LOST),
  'a worker is frozen, and wakes up late': frozen(WORKERS),
  'a gateway is frozen, and wakes up late': frozen(GATEWAYS),
  'a dispatcher is frozen, and wakes up late': frozen(DISPATCHERS),
  'wall clocks jump two hours apart, and back': {
    async run(place, options) {
      for (const pid of place.pids()) process.kill(pid, 'SIGUSR2');
      await lasts(options);
      for (const pid of place.pids()) process.kill(pid, 'SIGUSR2');
      return undefined;
    },
  },
};

/** Each part in order, one after the other. */
export async function restartAll(place: Place): Promise<void> {
  for (const part of PARTS) await place.stack.restart(part);
}
