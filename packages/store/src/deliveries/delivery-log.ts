// Contract 5: a project's deliveries as their log tells them, and their redelivery.
import { randomBytes } from 'node:crypto';
import { isRunId, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { runScript } from '../scripts.ts';
import { storeError } from '../store-error.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreTimings } from '../timings.ts';
import type { AttemptRecord } from './delivery-store.ts';
import type { DeliveryQueue } from './queue.ts';
import { deliveryIdOf, isHeld, parkedOf } from './stored-delivery.ts';

/** `waiting`: its run has not ended. */
export type DeliveryState = 'waiting' | 'pending' | 'delivered' | 'failed';

/** An attempt as it was recorded. Times are Unix ms. */
export interface LoggedAttempt extends AttemptRecord {
  readonly attempt: number;
  /** What became of the delivery by it. */
  readonly state: DeliveryState;
  readonly nextAt?: number;
  /** Set where it was parked before. */
  readonly parked?: { readonly since: number; readonly reason: string };
}

export interface Delivery {
  readonly runId: RunId;
  /** `webhook-id`. */
  readonly deliveryId: string;
  readonly url: string;
  readonly state: DeliveryState;
  /** How many were made. */
  readonly attempts: number;
  /** When its run ended, Unix ms. */
  readonly createdAt?: number;
  /** When the next attempt is due, Unix ms. */
  readonly nextAt?: number;
  readonly parked?: { readonly since: number; readonly reason: string };
  /** Whether an attempt is being made just now. */
  readonly underWay: boolean;
  /** Oldest first, the newest hundred; only the last one in a list. */
  readonly log: readonly LoggedAttempt[];
}

export interface DeliveryFilter {
  readonly state?: DeliveryState;
  /** `host` or `host:port`. */
  readonly host?: string;
  /** The run's end, Unix ms, both included. */
  readonly since?: number;
  readonly until?: number;
}

export interface DeliveryPage {
  readonly deliveries: readonly Delivery[];
  /** Set where there may be more. */
  readonly cursor?: string;
}

export type Redelivered = 'asked' | 'under-way' | 'unknown';

/** Records looked at for one page: a filter that fits few of them does not hold Redis. */
const EXAMINED = 500;
const PORTION = 100;
const FIELDS = ['hook', 'delivery', 'tries', 'ended', 'next', 'parked', 'hold', 'state'] as const;

export class DeliveryLog {
  constructor(
    private readonly redis: Redis,
    private readonly queue: DeliveryQueue,
    private readonly timings: Pick<StoreTimings, 'commandMs' | 'handoverMs'>,
  ) {}

  /** A run's deliveries, with all their attempts; `undefined` where the run is unknown or past its retention. */
  async ofRun(project: string, runId: RunId): Promise<readonly Delivery[] | undefined> {
    const [found] = await this.read(project, [runId], 0);
    if (found === undefined) return undefined;
    return found === 'none' ? [] : [found];
  }

  /**
   * Newest first, by the end of their runs. A page may be shorter than `limit` and still have a cursor.
   *
   * @throws ServiceError `invalid_request` for a cursor that is none
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
      const found = await this.within(
        this.redis.zrange(key, max, min, 'BYSCORE', 'REV', 'LIMIT', offset, PORTION, 'WITHSCORES'),
      );
      const all = placesIn(found);
      offset += all.length;
      const places = all.filter(({ at, runId }) => !after || at < after.at || runId < after.runId);
      const records = await this.read(
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
   * Makes deliveries due at once, each by one attempt with the same id and a fresh signature, and the schedule from its start.
   * Atomic for each: one whose attempt is under way, or was asked for already and not yet made, is refused.
   */
  async redeliver(project: string, runIds: readonly RunId[]): Promise<readonly Redelivered[]> {
    if (runIds.length === 0) return [];
    const args = [this.timings.handoverMs, randomBytes(8).toString('hex'), ...runIds];
    const answers = (await this.within(runScript(this.redis, 'delivery-redeliver', project, args))) as number[];
    return answers.map((attempt, at) => {
      if (attempt === 0) return 'unknown';
      if (attempt < 0) return 'under-way';
      // What cannot be handed over now is in `due`: reap hands it out.
      this.queue.add({ project, runId: runIds[at] as RunId, attempt }, 0).catch(() => {});
      return 'asked';
    });
  }

  /** @param from of the attempts: 0 all of them, -1 the last one */
  private async read(
    project: string,
    runIds: readonly RunId[],
    from: 0 | -1,
  ): Promise<readonly (Delivery | 'none' | undefined)[]> {
    if (runIds.length === 0) return [];
    const prefix = projectPrefix(project);
    const pipeline = this.redis.pipeline();
    for (const runId of runIds) {
      pipeline.hmget(prefix + names.run + runId, ...FIELDS);
      pipeline.lrange(prefix + names.attempts + runId, from, -1);
    }
    const [seconds] = await this.within(this.redis.time());
    const replies = (await this.within(pipeline.exec())) ?? [];
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

  private within<T>(call: Promise<T>): Promise<T> {
    return withinLimit(call, this.timings.commandMs);
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
  if (at === undefined || !isRunId(runId)) throw new ServiceError('invalid_request', '`cursor` is not one of ours.');
  return { at: Number(at), runId };
}
