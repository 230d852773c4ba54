// Every Redis key and channel of the service, spelled here and nowhere else: in the Lua scripts they are `K.<name>`.

/** What all keys of one project begin with. The braces are the cluster hash tag: one project is one slot, so every script sees one slot. */
export const projectPrefix = (project: string): string => `ip:{${project}}:`;

/**
 * What the keys of receivers begin with: all of them are one slot, for a receiver's cap is shared by projects. No project has this
 * prefix, since no project's name holds an asterisk.
 */
export const hostsPrefix = 'ip:{*}:';

/** Projects that ever accepted a run or were announced, scored by the store's time of their last use (ms): what reap visits. */
export const projectsKey = 'ip:projects';

/** How long a project's place in that index is good for, ms. */
export const INDEX_MS = 5_000;

/** string: `<Redis' run_id> <commands refused for a file that could not be written>` that the last rewrite of its file was asked for. */
export const rewrittenKey = 'ip:rewritten';

/** zset: revoked tokens and subjects as JSON (src/tokens/revocations.ts), scored by when the entry expires (ms). */
export const revokedKey = 'ip:revoked';

/** string: how many changes there were to that set. */
export const revocationChangesKey = 'ip:revoked:changes';

/** Behind the project's prefix. Those that end in `:` take a name. */
export const names = {
  /** hash: a run's record */
  run: 'run:',
  /** stream: a run's items; entry id `<last number>-<count>`, one field whose name is the kind */
  items: 'items:',
  /** zset by app: queued runs, scored by queue time (µs) */
  queue: 'queue:',
  /** hash: app → how long a run may wait (ms); the index of the queues */
  queues: 'queues',
  /** zset by app: workers with a free slot, the longest waiting first (µs) */
  waiting: 'waiting:',
  /** zset: running runs, scored by the end of their lease (ms) */
  leases: 'leases',
  /** zset: workers, scored by the end of their lease (ms) */
  workers: 'workers',
  /** hash by worker: number and runs of its last take, for a repeat after a lost reply; `waits <app>` where it may be waiting */
  took: 'took:',
  /** zset by app: workers that serve it, scored by the end of their lease (ms) */
  serving: 'serving:',
  /** hash: app → its description (JSON) */
  apps: 'apps',
  /** zset: gateways, scored by the end of their lease (ms) */
  gateways: 'gateways',
  /** hash: gateway → the highest number of its follow, unfollow and attend calls */
  numbers: 'numbers',
  /** set by gateway: open runs it follows */
  following: 'following:',
  /** zset: unknown runs whose accept was not answered, scored by when that is forgotten (ms) */
  tombstones: 'tombstones',
  /** zset: open runs without a reader, scored by when they are cancelled (ms) */
  absent: 'absent',
  /** zset: runs whose webhook is not settled, scored by when something must have happened (ms) */
  due: 'due',
  /** string by idempotency key: `<run id> <fingerprint>` */
  idempotency: 'idempotency:',
  /** list by run: attempts of its delivery (JSON), oldest first */
  attempts: 'attempts:',
  /** zset: runs that have a delivery, scored by the run's end (ms) */
  deliveries: 'deliveries',
  /** list by run: what its function printed; parts of `<number of the first line> <how many>\n<JSON>` */
  log: 'log:',
  /** zset: all runs, scored by their acceptance (µs) */
  runs: 'runs',
  /** zset: ended runs that nobody was promised, scored by when they are forgotten (ms) */
  kept: 'kept',
  /** zset: ended runs that were promised, scored by when they are forgotten (ms) */
  promises: 'promises',
  /** zset: ended runs that somebody still reads, scored by when that is believed no more (ms) */
  reading: 'reading',
  /** string: what the project's runs take in Redis, bytes */
  bytes: 'bytes',
  /** string: `<bytes> <1|0>`, the share that writes are held to, and whether unpromised ended runs may make room (lua/shared/room) */
  share: 'share',
  /** string: bytes for which a write needs room */
  wanted: 'wanted',
  /** string: when reap last ran (ms) */
  reaped: 'reaped',
  /** channel by gateway: items and outcomes of the runs it follows */
  toGateway: 'to-gateway:',
  /** channel by worker: wakes, cancels, positions of readers */
  toWorker: 'to-worker:',
  /** channel: descriptions of apps as they change */
  announced: 'announced',

  // Behind the receivers' prefix. A line is `<project> <host:port>`.
  /** zset by line: open attempts, scored by the end of their lease (ms) */
  open: 'open:',
  /** zset by host:port: the same over all projects */
  openAll: 'open-all:',
  /** zset by project: open attempts to all receivers, scored by the end of their lease (ms) */
  openProject: 'open-project:',
  /** zset by project: receivers with deliveries parked because the project's share is open, scored by their last turn (µs) */
  waitingHosts: 'waiting-hosts:',
  /** string by line: the receiver has succeeded within the last 30 days */
  succeeded: 'succeeded:',
  /** zset by line: parked deliveries as `<run> <attempt>`, scored by when they were parked (µs) */
  parked: 'parked:',
  /** string: how many are parked, for metrics */
  parkedCount: 'parked-count',
  /** zset by host:port: projects that wait for a slot, the one served longest ago first (µs) */
  turns: 'turns:',
  /** hash: line → how many parked deliveries were woken, for their turns */
  turn: 'turn',
  /** string: number of the last slot that was given to a parked delivery */
  slotNumber: 'slot-number',
  /** hash by line: its circuit, where there was a failure of late */
  circuit: 'circuit:',
  /** zset: lines whose circuit is open, scored by when that is forgotten (ms) */
  circuits: 'circuits',
  /** zset: lines, scored by when they must be looked at (ms) */
  watch: 'watch',
} as const;

/**
 * The script with its keys spelled out: `K.run .. id` becomes the project's prefix (`P`, KEYS[1]), the name and the id in one concatenation.
 * Its `ARGV` are unpacked from the one argument that it gets, and `reply` packs its answer (src/message-pack.ts).
 */
export function withKeys(script: string): string {
  const spelled = script.replace(/\bK\.(\w+)\b/g, (_, name: string) => {
    if (!(name in names)) throw new Error(`a script names the key '${name}', which is not among them`);
    return `P..'${names[name as keyof typeof names]}'`;
  });
  return `local P, ARGV, reply = KEYS[1], cmsgpack.unpack(ARGV[1]), cmsgpack.pack\n${spelled}`;
}
