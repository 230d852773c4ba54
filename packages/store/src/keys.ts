// Defines every Redis key and channel of the service. The Lua scripts name them as `K.<name>`.

/** Returns the prefix of one project's keys. The braces are the cluster hash tag: one project is one slot, and a script must see one slot. */
export const projectPrefix = (project: string): string => `ip:{${project}}:`;

/**
 * The prefix of the receivers' keys. All of them are one slot, because projects share a receiver's cap. No project has this prefix,
 * because a project's name contains no asterisk.
 */
export const hostsPrefix = 'ip:{*}:';

/** zset: projects that have accepted a run or announced an app, scored by the store's time of their last use (ms). Reap visits these projects. */
export const projectsKey = 'ip:projects';

/** Time for which a gateway does not write a project's score again, ms. */
export const INDEX_MS = 5_000;

/** string: `<Redis' run_id> <commands refused because its file could not be written>` for which the last rewrite of the file was asked. */
export const rewrittenKey = 'ip:rewritten';

/** zset: revoked tokens and subjects as JSON (src/tokens/revocations.ts), scored by the expiry of the entry (ms). */
export const revokedKey = 'ip:revoked';

/** string: number of changes to that set. */
export const revocationChangesKey = 'ip:revoked:changes';

/** set: projects with deployed versions. Also the channel on which changes of versions are announced, as the project's name. */
export const deployedKey = 'ip:deployed';

/** set: projects that have or had secrets of apps. Gateways look for requests of workers in these projects. */
export const secretProjectsKey = 'ip:secret-projects';

/** string: set while a gateway has the turn to collect versions and bundles. */
export const collectingKey = 'ip:bundles:collecting';

/** zset: digests of bundles that no version uses, scored by the time at which a gateway first found the bundle unused (ms). */
export const unusedKey = 'ip:bundles:unused';

/** string by digest: set for a minute after a gateway has decided to remove the bundle. */
export const removingPrefix = 'ip:bundles:removing:';

/** Time for which that key is set, ms. */
export const REMOVING_MS = 60_000;

/** The names behind the project's prefix. A name that ends in `:` is followed by an id. */
export const names = {
  /** hash: a run's record */
  run: 'run:',
  /** stream: a run's items; entry id `<last number>-<count>`, one field whose name is the kind */
  items: 'items:',
  /** zset by queue (parts/run.lua: queue_of): queued runs, scored by queue time (µs) */
  queue: 'queue:',
  /** hash: queue → queue timeout of its runs (ms); the index of the queues */
  queues: 'queues',
  /** zset by queue: workers with a free slot, the longest waiting first (µs) */
  waiting: 'waiting:',
  /** zset: running runs, scored by the end of their lease (ms) */
  leases: 'leases',
  /** zset: workers, scored by the end of their lease (ms) */
  workers: 'workers',
  /** hash by worker: number and runs of its last take, for a repeat after a lost reply; `waits <queue>` if it may be waiting */
  took: 'took:',
  /** zset by app, and by queue of a version: workers that serve it, scored by the end of their lease (ms) */
  serving: 'serving:',
  /** hash by app: worker → `<ready replicas> <desired replicas>` */
  replicas: 'replicas:',
  /** hash: app → its description (JSON) */
  apps: 'apps',
  /** zset: gateways, scored by the end of their lease (ms) */
  gateways: 'gateways',
  /** hash: gateway → the highest number of its follow, unfollow and attend calls */
  numbers: 'numbers',
  /** set by gateway: open runs it follows */
  following: 'following:',
  /** zset: unknown runs with an unanswered accept, scored by the end of the tombstone (ms) */
  tombstones: 'tombstones',
  /** zset: open runs without a reader, scored by the time of their cancel (ms) */
  absent: 'absent',
  /** zset: runs with an unfinished delivery, scored by the latest time of the next step (ms) */
  due: 'due',
  /** string by idempotency key: `<run id> <fingerprint>` */
  idempotency: 'idempotency:',
  /** list by run: attempts of its delivery (JSON), oldest first */
  attempts: 'attempts:',
  /** zset: runs that have a delivery, scored by the run's end (ms) */
  deliveries: 'deliveries',
  /** list by run: lines that its function printed; parts of `<number of the first line> <number of lines>\n<JSON>` */
  log: 'log:',
  /** zset: all runs, scored by their acceptance (µs) */
  runs: 'runs',
  /** zset: ended unpromised runs, scored by the end of their retention (ms) */
  kept: 'kept',
  /** zset: ended promised runs, scored by the end of their retention (ms) */
  promises: 'promises',
  /** zset: ended runs with a reader, scored by the time until which the reader counts as present (ms) */
  reading: 'reading',
  /** hash by `<minute (ms)>:<app>`: number of runs that ended, by outcome and range of latencies (parts/ending.lua) */
  stats: 'stats:',
  /** zset: apps with runs that ended in the last day, scored by the time of a recent end (ms) */
  countedApps: 'counted-apps',
  /** string: bytes that the project's runs take in Redis */
  bytes: 'bytes',
  /** string: `<bytes> <1|0>`, the share that bounds writes, and 1 if unpromised ended runs may make room (parts/memory.lua) */
  share: 'share',
  /** string: bytes for which a write needs room */
  wanted: 'wanted',
  /** string: time of the last reap (ms) */
  reaped: 'reaped',
  /** channel by gateway: items and outcomes of the runs it follows */
  toGateway: 'to-gateway:',
  /** channel by worker: wakes, cancels, positions of readers */
  toWorker: 'to-worker:',
  /** channel: descriptions of apps as they change */
  announced: 'announced',
  /** set: apps with deployed versions */
  deployed: 'deployed',
  /** hash by app: its active version, and its roll-out (parts/roll-outs.lua) */
  deployment: 'deployment:',
  /** set: apps with a roll-out under way */
  rolling: 'rolling',
  /** hash by app: worker → its last report about the version that is rolled out */
  rollOut: 'roll-out:',
  /** zset by app: its versions, scored by their last deployment (ms) */
  versions: 'versions:',
  /** hash by `<app>:<version>`: a version's record */
  version: 'version:',
  /** list by `<app>:<version>`: lines of its log (JSON), oldest first */
  buildLog: 'build-log:',
  /** list by app: activations as `<version> <ms> <author>`, newest first */
  activations: 'activations:',
  /** string by app: set for a day after the app was deleted. Its queued runs end as `not_found`. */
  removed: 'removed:',
  /** hash by app: name of a secret → `<updated (ms)> <sealed value>` */
  secrets: 'secrets:',
  /** hash: app → name of the present state of its secrets */
  secretRevisions: 'secret-revisions',
  /** set: requests of workers for copies of secrets (JSON) */
  secretRequests: 'secret-requests',
  /** string by `<app>:<worker>`: the secrets of the app, sealed for the worker */
  secretCopy: 'secret-copy:',
  /** list: changes by users, and undoings by the service (JSON), newest first */
  audit: 'audit',
  /** list: roll-outs that the service has undone, as `<ms> <app> <version> <reason>`, until a gateway writes them to `audit` */
  undone: 'undone',

  // Behind the receivers' prefix. A line is one project's part of a receiver: `<project> <host:port>`.
  /** zset by line: open attempts, scored by the end of their lease (ms) */
  open: 'open:',
  /** string by host:port: number of slots of all projects */
  hostSlots: 'host-slots:',
  /** string by project: number of its slots at all receivers */
  projectSlots: 'project-slots:',
  /** zset by project: receivers with deliveries that wait for the project's share of attempts, scored by their last turn (µs) */
  waitingHosts: 'waiting-hosts:',
  /** string by line: set if the receiver has succeeded within the last 30 days */
  succeeded: 'succeeded:',
  /** zset by line: parked deliveries as `<run> <attempt>`, scored by the time of parking (µs) */
  parked: 'parked:',
  /** string: number of parked deliveries, for metrics */
  parkedCount: 'parked-count',
  /** zset by host:port: projects that wait for a slot, scored by their last turn (µs) */
  turns: 'turns:',
  /** hash: line → number of woken parked deliveries, which decides the next turn */
  turn: 'turn',
  /** string: number of the last slot that a parked delivery received */
  slotNumber: 'slot-number',
  /** hash by line: its circuit, if there was a recent failure */
  circuit: 'circuit:',
  /** zset: lines whose circuit is open, scored by the time at which the circuit is forgotten (ms) */
  circuits: 'circuits',
  /** zset by project: receivers with a recent parked delivery or open circuit, scored by its time (ms) */
  troubled: 'troubled:',
  /** zset: lines, scored by the time of their next look (ms) */
  watch: 'watch',
} as const;

/** Redis' clock in µs. Scripts never use a caller's time. */
const NOW_US = "local time = redis.call('TIME')\nlocal now_us = time[1] * 1000000 + time[2]\n";
/** The same in ms. */
const NOW = 'local now = math.floor(now_us / 1000)\n';
/** The ms as text, for times that are written. Redis prints a Lua number by floating point, which costs more than the rest of a field. */
const NOW_TEXT = "local now_text = string.format('%d', now)\n";

/** Returns the definitions of the clock that a script uses. */
function clockOf(script: string): string {
  if (/\bnow_text\b/.test(script)) return NOW_US + NOW + NOW_TEXT;
  if (/\bnow\b/.test(script)) return NOW_US + NOW;
  return /\bnow_us\b/.test(script) ? NOW_US : '';
}

/**
 * Returns the script with its keys spelled out: `K.run .. id` becomes the project's prefix (`P`, KEYS[1]), the name and the id in one
 * concatenation. The script's only argument is unpacked into `ARGV`, and `reply` packs the script's answer (src/scripts.ts). `now_us`,
 * `now` and `now_text` are the time of Redis.
 */
export function withKeys(script: string): string {
  const spelled = script.replace(/\bK\.(\w+)\b/g, (_, name: string) => {
    if (!(name in names)) throw new Error(`a script uses the key '${name}', which src/keys.ts does not define`);
    return `P..'${names[name as keyof typeof names]}'`;
  });
  return `local P, ARGV, reply = KEYS[1], cmsgpack.unpack(ARGV[1]), cmsgpack.pack\n${clockOf(script)}${spelled}`;
}
