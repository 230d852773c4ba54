// Contract 5, "Deliveries": reads a project's deliveries with their log, and redelivers them.
import { randomBytes } from 'node:crypto';
import { isRunId, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { isHeld } from '../runs/codec.ts';
import { runScript } from '../scripts.ts';
import { storeError } from '../store-error.ts';
import type { StoreTimings } from '../timings.ts';
import { deliveryIdOf, parkedOf } from './delivery-begin.ts';
import { redeliverScript } from './delivery-redeliver.ts';
import type { AttemptRecord } from './delivery-store.ts';
import type { DeliveryQueue } from './queue.ts';

/** `waiting`: the delivery's run has not ended. */
export type DeliveryState = 'waiting' | 'pending' | 'delivered' | 'failed';

/** A recorded attempt. Times are Unix ms. */
export interface LoggedAttempt extends AttemptRecord {
  readonly attempt: number;
  /** State of the delivery after the attempt. */
  readonly state: DeliveryState;
  readonly nextAt?: number;
  /** Set if the delivery was parked before. */
  readonly parked?: { readonly since: number; readonly reason: string };
}

export interface Delivery {
  readonly runId: RunId;
  /** `webhook-id`. */
  readonly deliveryId: string;
  readonly url: string;
  readonly state: DeliveryState;
  /** Number of attempts so far. */
  readonly attempts: number;
  /** End of the run, Unix ms. */
  readonly createdAt?: number;
  /** Time of the next attempt, Unix ms. */
  readonly nextAt?: number;
  readonly parked?: { readonly since: number; readonly reason: string };
  /** Whether an attempt is open now. */
  readonly underWay: boolean;
  /** The newest hundred attempts, oldest first. A list has only the last attempt. */
  readonly log: readonly LoggedAttempt[];
}

export interface DeliveryFilter {
  readonly state?: DeliveryState;
  /** `host` or `host:port`. */
  readonly host?: string;
  /** Bounds of the run's end, Unix ms. Both are included. */
  readonly since?: number;
  readonly until?: number;
}

export interface DeliveryPage {
  readonly deliveries: readonly Delivery[];
  /** Set if further deliveries may follow. */
  readonly cursor?: string;
}

export type Redelivered = 'asked' | 'under-way' | 'unknown';

/** Records examined for one page, so that a filter with few matches does not hold Redis. */
const EXAMINED = 500;
/** Records examined for one count. */
const COUNTED = 5_000;
const PORTION = 100;
const FIELDS = ['hook', 'delivery', 'tries', 'ended', 'next', 'parked', 'hold', 'state'] as const;

export class DeliveryLog {
  readonly #redis: Redis;
  readonly #queue: DeliveryQueue;
  readonly #timings: Pick<StoreTimings, 'commandMs' | 'handoverMs'>;

  constructor(redis: Redis, queue: DeliveryQueue, timings: Pick<StoreTimings, 'commandMs' | 'handoverMs'>) {
    this.#redis = redis;
    this.#queue = queue;
    this.#timings = timings;
  }

  /** Returns a run's deliveries with all their attempts, or `undefined` if the run is unknown or past its retention. */
  async ofRun(project: string, runId: RunId): Promise<readonly Delivery[] | undefined> {
    const [found] = await this.#read(project, [runId], 0);
    if (found === undefined) return undefined;
    return found === 'none' ? [] : [found];
  }

  /**
   * Returns deliveries, newest first, by the end of their runs. A page may be shorter than `limit` and still have a cursor.
   *
   * @throws ServiceError `invalid_request` for a malformed cursor
   */
  async list(project: string, filter: DeliveryFilter, limit: number, cursor?: string): Promise<DeliveryPage> {
    const key = projectPrefix(project) + names.deliveries;
    const after = cursor === undefined ? undefined : placeOf(cursor);
    const upTo = Math.min(after?.at ?? Number.POSITIVE_INFINITY, filter.until ?? Number.POSITIVE_INFINITY);
    const max = upTo === Number.POSITIVE_INFINITY ? '+inf' : String(upTo);
    const min = filter.since === undefined ? '-inf' : String(filter.since);
    const fitting: Delivery[] = [];
    let offset = 0;
    let examined = 0;
    for (;;) {
      const found = await this.#within(
        this.#redis.zrange(key, max, min, 'BYSCORE', 'REV', 'LIMIT', offset, PORTION, 'WITHSCORES'),
      );
      const all = placesIn(found);
      offset += all.length;
      const places = all.filter(({ at, runId }) => !after || at < after.at || runId < after.runId);
      const records = await this.#read(
        project,
        places.map(({ runId }) => runId),
        -1,
      );
      for (const [at, place] of places.entries()) {
        const delivery = records[at];
        examined += 1;
        if (delivery !== undefined && delivery !== 'none' && fits(delivery, filter)) fitting.push(delivery);
        if (fitting.length >= limit || examined >= EXAMINED) {
          return { deliveries: fitting, cursor: `${place.at}.${place.runId}` };
        }
      }
      if (all.length < PORTION) return { deliveries: fitting };
    }
  }

  /**
   * Counts deliveries, newest first. A cursor means that the count is of the examined deliveries, and that further deliveries may match.
   *
   * @throws ServiceError `invalid_request` for a malformed cursor
   */
  async count(project: string, filter: DeliveryFilter, cursor?: string): Promise<{ count: number; cursor?: string }> {
    let count = 0;
    let next = cursor;
    for (let examined = 0; examined < COUNTED; examined += EXAMINED) {
      const page = await this.list(project, filter, EXAMINED, next);
      count += page.deliveries.length;
      next = page.cursor;
      if (next === undefined) return { count };
    }
    return { count, ...(next !== undefined && { cursor: next }) };
  }

  /**
   * Makes deliveries due at once. Each gets one attempt with the same id and a fresh signature, and its schedule starts again.
   * Atomic per delivery: a delivery with an open attempt, or with an earlier request whose attempt is not made yet, is refused.
   */
  async redeliver(project: string, runIds: readonly RunId[]): Promise<readonly Redelivered[]> {
    if (runIds.length === 0) return [];
    const args = { handoverMs: this.#timings.handoverMs, requestId: randomBytes(8).toString('hex'), runIds };
    const answers = await this.#within(runScript(this.#redis, redeliverScript, project, args));
    return answers.map((attempt, at) => {
      if (typeof attempt !== 'number') return attempt;
      // If the queue does not take the delivery now, reap hands it over, because it is in `due`.
      this.#queue.add({ project, runId: runIds[at] as RunId, attempt }, 0).catch(() => {});
      return 'asked';
    });
  }

  /** @param from first attempt to read: 0 for all attempts, -1 for the last attempt */
  async #read(
    project: string,
    runIds: readonly RunId[],
    from: 0 | -1,
  ): Promise<readonly (Delivery | 'none' | undefined)[]> {
    if (runIds.length === 0) return [];
    const prefix = projectPrefix(project);
    const pipeline = this.#redis.pipeline();
    for (const runId of runIds) {
      pipeline.hmget(prefix + names.run + runId, ...FIELDS);
      pipeline.lrange(prefix + names.attempts + runId, from, -1);
    }
    const [seconds] = await this.#within(this.#redis.time());
    const replies = (await this.#within(pipeline.exec())) ?? [];
    const failed = replies.find(([error]) => error !== null);
    if (failed) throw storeError(failed[0]);
    return runIds.map((runId, at) =>
      deliveryOf(
        runId,
        replies[2 * at]?.[1] as (string | null)[],
        replies[2 * at + 1]?.[1] as string[],
        Number(seconds) * 1000,
      ),
    );
  }

  #within<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.#timings.commandMs);
  }
}

function deliveryOf(
  runId: RunId,
  values: readonly (string | null)[],
  attempts: readonly string[],
  now: number,
): Delivery | 'none' | undefined {
  const [hook, state, tries, ended, next, parked, hold, runState] = values;
  if (!runState) return undefined;
  if (!hook) return 'none';
  const wait = parkedOf(parked ?? undefined);
  return {
    runId,
    deliveryId: deliveryIdOf(runId),
    url: hook,
    state: (state as DeliveryState | null) ?? 'waiting',
    attempts: Number(tries ?? 0),
    ...(ended && { createdAt: Number(ended) }),
    ...(next && { nextAt: Number(next) }),
    ...(wait && { parked: wait }),
    underWay: isHeld(hold ?? undefined, now),
    log: attempts.map((text) => JSON.parse(text) as LoggedAttempt),
  };
}

function fits(delivery: Delivery, { state, host }: DeliveryFilter): boolean {
  if (state !== undefined && delivery.state !== state) return false;
  if (host === undefined) return true;
  const url = new URL(delivery.url);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return [url.hostname, url.host, `${url.hostname}:${port}`].includes(host.toLowerCase());
}

interface Place {
  readonly at: number;
  readonly runId: RunId;
}

function placesIn(reply: readonly string[]): Place[] {
  const places: Place[] = [];
  for (let at = 0; at < reply.length; at += 2) places.push({ runId: reply[at] as RunId, at: Number(reply[at + 1]) });
  return places;
}

function placeOf(cursor: string): Place {
  const [, at, runId = ''] = /^(\d{1,16})\.(.+)$/.exec(cursor) ?? [];
  if (at === undefined || !isRunId(runId))
    throw new ServiceError('invalid_request', '`cursor` does not belong to this list.');
  return { at: Number(at), runId };
}
