// Contract 5, "Cancel: `POST /runs/{run_id}/cancel`": cancels a run, by cancel.lua.
import { randomUUID } from 'node:crypto';
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { withinLimit } from '../redis.ts';
import { codeIn, listIn, runScript, type Script } from '../scripts.ts';
import { storeError } from '../store-error.ts';
import type { StoreTimings } from '../timings.ts';

/** The state of a run before its cancel. */
export type CancelledFrom = 'queued' | 'running' | 'ended' | 'unknown';

export interface CancelArguments {
  readonly handoverMs: number;
  /** Time for which the cancel of an unknown run is remembered; 0: not at all. */
  readonly tombstoneMs: number;
  readonly runId: RunId;
  /** A repeated request gets its first answer. */
  readonly requestId: string;
}

export const cancelScript: Script<CancelArguments, { from: CancelledFrom; webhookDue: boolean }> = {
  name: 'cancel',
  encode: ({ handoverMs, tombstoneMs, runId, requestId }) => [handoverMs, tombstoneMs, runId, requestId],
  decode: (reply) => {
    const [from, due] = listIn(listIn(reply)[0]);
    return { from: codeIn(from, ['queued', 'running', 'ended', 'unknown']), webhookDue: due === 1 };
  },
};

/** Cancels runs for a gateway. */
export class Canceller {
  readonly #redis: Redis;
  readonly #deliveries: DeliveryQueue;
  readonly #timings: StoreTimings;

  constructor(redis: Redis, deliveries: DeliveryQueue, timings: StoreTimings) {
    this.#redis = redis;
    this.#deliveries = deliveries;
    this.#timings = timings;
  }

  /** Cancels a run and returns its state before. @throws ServiceError `unavailable` */
  cancel(project: string, runId: RunId): Promise<CancelledFrom> {
    return withinLimit(this.#call(project, runId, 0), this.#timings.commandMs);
  }

  /**
   * Cancels a run whose accept was not answered. If the accept has not executed yet, the run is refused when it does.
   *
   * Has no time limit: the connection holds the command until Redis is back.
   *
   * @throws ServiceError `unavailable` if the connection was closed before the answer
   */
  async withdraw(project: string, runId: RunId): Promise<void> {
    await this.#call(project, runId, this.#timings.tombstoneMs).catch((cause: unknown) => {
      throw storeError(cause);
    });
  }

  async #call(project: string, runId: RunId, tombstoneMs: number): Promise<CancelledFrom> {
    const args = { handoverMs: this.#timings.handoverMs, tombstoneMs, runId, requestId: randomUUID() };
    const { from, webhookDue } = await runScript(this.#redis, cancelScript, project, args);
    if (webhookDue) this.#deliveries.handOver(project, [runId]);
    return from;
  }
}
