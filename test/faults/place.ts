// The stack for faults: two gateways, three workers, two dispatchers and a Redis with a file. Each service has a network and a clock of its
// own, under steady load. It also collects the outcome of every call.
import { createHmac } from 'node:crypto';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { redisAddress } from '@inference-proxy/platform';
import { freePort, instancesOf, obtainRedis, projectRoot, redisUrlAt, type Scale } from '@inference-proxy/supervisor';
import { Redis } from 'ioredis';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { type Receiver, receiver } from '../receiver/receivers.ts';
import { type KillablePart, startTestStack, type TestStack } from '../stack/test-stack.ts';
import { BadNetwork, type Trouble as NetworkTrouble } from './bad-network.ts';
import { type Disk, openDisk } from './disk.ts';
import { type Delivered, type History, mayBeForgotten, REFUSED, type ReportedRun, type Trouble } from './history.ts';
import { leftInStore, leftProcesses } from './leftovers.ts';
import { Load } from './load.ts';
import { StoreWatch } from './store-watch.ts';

export const SCALE: Scale = { gateway: 2, worker: 3, dispatcher: 2 };
export const PARTS = Object.entries(SCALE).flatMap(([name, count]) => instancesOf(name, count)) as KillablePart[];

const SECRET = 'the receiver’s own';
const HOUR_MS = 3_600_000;
/** The time between two looks for remaining processes: each look reads all processes of the machine. */
const LOOK_EVERY_MS = 300;
/** Look-ups at a time. */
const LOOK_UPS = 16;

/** Leases of a third of the default, because the short form has no time to wait. Shorter leases would expire on a busy machine. */
export const SHORT_TIMES = { LEASE_MS: '5000', LEASE_RENEW_MS: '1000', ATTEND_MS: '1000' };

export interface PlaceOptions {
  /** Settings of all services. */
  readonly env?: Record<string, string>;
  /** Puts a proxy in front of the gateways, given their ports. @returns its port and a function that stops it */
  readonly front?: (gateways: readonly number[]) => Promise<{ port: number; stop(): Promise<void> }>;
}

export class Place {
  readonly troubles: Trouble[] = [];
  readonly #delivered: Delivered[] = [];
  readonly #closers: (() => unknown)[] = [];
  readonly #networks = new Map<string, BadNetwork>();
  readonly #gatewayPorts = new Map<string, number>();
  stack!: TestStack;
  redis!: Redis;
  disk!: Disk;
  load!: Load;
  caller!: Caller;

  private constructor() {}

  /** Resolves when calls of every kind succeed. */
  static async open(options: PlaceOptions = {}): Promise<Place> {
    const place = new Place();
    try {
      await place.#open(options);
    } catch (error) {
      await place.close();
      throw error;
    }
    return place;
  }

  async #open({ env = {}, front }: PlaceOptions): Promise<void> {
    const hook = await this.#receiver();
    this.disk = await openDisk();
    this.#closers.push(() => this.disk.close());
    const redisPort = await freePort();
    const ports = new Map<string, number>();
    for (const part of PARTS) {
      const network = new BadNetwork(redisPort);
      this.#networks.set(part, network);
      ports.set(part, await network.listen());
      this.#closers.push(() => network.close());
    }
    for (const name of instancesOf('gateway', SCALE.gateway)) this.#gatewayPorts.set(name, await freePort());
    const clock = pathToFileURL(join(projectRoot(), 'test', 'faults', 'shifted-clock.mjs')).href;
    this.stack = await startTestStack({
      scale: SCALE,
      redis: { port: redisPort, binary: await this.disk.wrap(await obtainRedis(() => {})) },
      redisDir: this.disk.dir,
      env: (part, redisUrl) => ({
        WORKER_APPS: 'demo/steady',
        WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
        // A part that failed twice restarts sooner than in production.
        WEBHOOK_SCHEDULE: '0,5,10,10,10,10,10,10,10,10',
        ...env,
        REDIS_URL: redisUrlAt(redisUrl, ports.get(part) as number),
        // Half of the parts jump an hour ahead, half an hour back, at the signal to their clocks.
        NODE_OPTIONS: `--import ${clock}`,
        CLOCK_SHIFT_MS: String(part.endsWith('1') ? HOUR_MS : -HOUR_MS),
        ...(this.#gatewayPorts.has(part) && { PORT: String(this.#gatewayPorts.get(part)) }),
      }),
    });
    this.#closers.push(() => this.stack.stop());
    this.redis = new Redis({ ...redisAddress(this.stack.redisUrl), maxRetriesPerRequest: null });
    this.redis.on('error', () => {});
    this.#closers.push(() => this.redis.disconnect());
    const before = await front?.([...this.#gatewayPorts.values()]);
    if (before) this.#closers.push(() => before.stop());
    const watch = new StoreWatch(this.stack.redisUrl, (stall) => this.troubles.push(stall));
    this.#closers.push(() => watch.stop());
    watch.start();
    // Valid for longer than any clock error.
    const exp = Math.floor(Date.now() / 1000) + 12 * 3600;
    this.caller = new Caller(before?.port ?? this.stack.port, this.stack.jwtSecret, 'demo', { exp });
    await this.caller.ready('steady');
    await mkdir(this.#marks);
    const webhook = { url: hook.url, secret: Buffer.from(SECRET, 'utf8').toString('latin1') };
    this.load = new Load({ caller: this.caller, webhook, marks: this.#marks });
    this.#closers.push(() => this.load.stop());
    await this.load.succeeds(2);
  }

  /**
   * Resolves when calls of every kind succeed again, through the proxy and at each gateway.
   *
   * @param since the time at which the fault ended; all times are `performance.now()`
   * @returns the time at which a call of each kind had succeeded, and the time at which each gateway answered by itself
   */
  async recovered(since = performance.now()): Promise<{ goodAt: number; wholeAt: number }> {
    const [goodAt, ...gateways] = await Promise.all([
      this.load.succeeds(1, since),
      ...instancesOf('gateway', SCALE.gateway).map((name) => this.#serves(this.gateway(name))),
    ]);
    return { goodAt, wholeAt: Math.max(goodAt, ...gateways) };
  }

  async #serves(caller: Caller): Promise<number> {
    return until(async () => {
      const answer = await caller.call('steady/value', { value: 1 }).catch(() => undefined);
      return answer?.status === 200 && performance.now();
    });
  }

  /** Sets the network between Redis and one or all services, until `network` is set to `none`. */
  network(trouble: NetworkTrouble, parts: readonly string[] = PARTS): void {
    for (const part of parts) this.#networks.get(part)?.set(trouble);
  }

  gateway(name: string): Caller {
    const exp = Math.floor(Date.now() / 1000) + 12 * 3600;
    return new Caller(Number(this.#gatewayPorts.get(name)), this.stack.jwtSecret, 'demo', { exp });
  }

  /** Processes of the parts, by name. */
  pids(parts: readonly KillablePart[] = PARTS): number[] {
    return parts.map((part) => this.stack.pid(part));
  }

  /** Ends the load, waits for due deliveries, and returns the history. */
  async settle(): Promise<History> {
    await this.load.stop();
    const { seen } = this.load;
    const promised = seen.flatMap((one) => {
      const isDue = one.kind === 'promised' && one.is === 'ok' && !mayBeForgotten(one, this.troubles);
      return isDue ? [String(one.runId)] : [];
    });
    // A missing delivery shows in the history.
    await until(() => {
      const came = new Set(this.#delivered.map(({ runId }) => runId));
      return promised.every((runId) => came.has(runId));
    }).catch(() => {});
    await until(async () => (await this.#left()).length === 0, LOOK_EVERY_MS).catch(() => {});
    const kept = seen.flatMap(({ kind, is, runId }) =>
      runId !== undefined && !REFUSED.has(is) && ['promised', 'resumed', 'retried'].includes(kind) ? [runId] : [],
    );
    const callers = instancesOf('gateway', SCALE.gateway).map((name) => this.gateway(name));
    const reported: ReportedRun[][] = [];
    const runs = [...new Set(kept)];
    for (let from = 0; from < runs.length; from += LOOK_UPS) {
      const some = runs.slice(from, from + LOOK_UPS);
      reported.push(...(await Promise.all(some.map((id) => Promise.all(callers.map((caller) => lookUp(caller, id)))))));
    }
    const entered = new Map<string, number>();
    for (const tag of await readdir(this.#marks)) entered.set(tag, (await readFile(join(this.#marks, tag))).length);
    return { ...this.soFar(), reported, entered, left: await this.#left() };
  }

  /** Returns the history without look-ups. */
  soFar(): History {
    const { troubles } = this;
    return { seen: this.load.seen, delivered: this.#delivered, reported: [], entered: new Map(), troubles, left: [] };
  }

  async close(): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
  }

  get #marks(): string {
    return join(this.stack.marksDir, 'entered');
  }

  async #left(): Promise<string[]> {
    const workers = this.pids(PARTS.filter((part) => part.startsWith('worker')));
    return [
      ...(await leftInStore(this.redis, { gateways: SCALE.gateway, workers: SCALE.worker })),
      ...(await leftProcesses(this.stack.appsDir, workers)),
    ];
  }

  async #receiver(): Promise<Receiver> {
    const hook = await receiver(({ headers, body }) => {
      this.#delivered.push({
        runId: String(headers['x-request-id']),
        webhookId: String(headers['webhook-id']),
        body: body.toString(),
        verified: isSigned(headers, body),
      });
      return { status: 200 };
    });
    this.#closers.push(() => hook.close());
    return hook;
  }
}

function isSigned(headers: Record<string, unknown>, body: Buffer): boolean {
  const signed = createHmac('sha256', Buffer.from(SECRET, 'utf8'))
    .update(`${headers['x-request-id']}.${headers['x-service-webhook-timestamp']}.`)
    .update(body)
    .digest('hex');
  return headers['x-service-webhook-signature'] === `v1,${signed}`;
}

async function lookUp(caller: Caller, runId: string): Promise<ReportedRun> {
  const { status, text } = await caller.request(`/v4/demo/runs/${runId}`, { method: 'GET' });
  if (status === 404) return { runId, status: 'unknown' };
  if (status !== 200) throw new Error(`the look-up answered ${status}: ${text}`);
  const reported = JSON.parse(text) as ReportedRun;
  return { runId, status: reported.status, result: reported.result };
}
