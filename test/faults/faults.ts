// The faults by name. Each fault ends by itself and reports the time of its end.
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
  /** Picks one of several equal parts. The short form takes the first, the soak a random one. */
  pick<T>(of: readonly T[]): T;
  /** The soak pauses for the longest promised recovery. */
  readonly long: boolean;
}

export interface Fault {
  /** @returns the time at which the fault ended, `performance.now()`; absent: the time of return */
  run(place: Place, options: FaultOptions): Promise<number | undefined>;
  /** Redis loses its last writes. */
  readonly tailLost?: true;
  /** Only the soak runs this fault, because it takes a minute. */
  readonly long?: true;
  /** Repairs the rest after the recovery and before the next fault. */
  mended?(place: Place): Promise<void>;
}

const GATEWAYS: KillablePart[] = ['gateway-1', 'gateway-2'];
const WORKERS: KillablePart[] = ['worker-1', 'worker-2', 'worker-3'];
const DISPATCHERS: KillablePart[] = ['dispatcher-1', 'dispatcher-2'];

/** Longer than the shortened lease, so that a part that is frozen for this time counts as dead. */
const FROZEN_MS = 8000;
const MINUTE_MS = 60_000;
const REDIS_STOPPED_MS = 10_000;
/** Faults of a bad network and of a disk. */
const lasts = ({ long }: FaultOptions): Promise<void> => sleep(long ? 10_000 : 3000);
const DELAY_MS = 300;
const REPLIES_LOST = { is: 'replies-lost', oneIn: 20 } as const;
/** Bytes of the append-only file that a machine's crash removes: some calls and half of a command. */
const TAIL_BYTES = 5001;
/** The length of a slow flush, and the time between two flushes. */
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

/** A bad network between Redis and some or all services. */
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

/** Changes settings of Redis for a time. */
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

/** Returns the connections of subscribers. */
async function listeners(place: Place): Promise<string[]> {
  const list = String(await place.redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => String(id));
}

/** A gateway stops reading its subscription during a burst until Redis cuts the connection. Its reader still receives every item. */
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
  'a gateway receives SIGTERM': stopped(GATEWAYS),
  'a worker receives SIGTERM': stopped(WORKERS),
  'a dispatcher receives SIGTERM': stopped(DISPATCHERS),
  'Redis is killed': {
    async run(place) {
      await withoutFlushes(place.redis);
      return ended(place, 'redis', 'SIGKILL');
    },
  },
  'Redis is killed and its last writes are lost': {
    tailLost: true,
    async run(place) {
      // Redis is stopped first. A stopped Redis writes nothing after the cut.
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
      // The file was begun by a rewrite, as after a long time of work. Redis leaves a hole in such a file (docs/decisions/0019-the-file-is-rewritten.md).
      await rewritten(place.redis);
      const free = await place.disk.fill(place.stack.pid('redis'));
      await lasts(options);
      await free();
      return undefined;
    },
    mended: (place) => rewritten(place.redis),
  },
  // Redis flushes at every write, and a stop of the process stands for the time of a slow flush. A real slow disk needs rights
  // over the machine.
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

/** Restarts the parts one after the other. */
export async function restartAll(place: Place): Promise<void> {
  for (const part of PARTS) await place.stack.restart(part);
}
