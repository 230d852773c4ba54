// Contract 5: keeps the store in order: ends what dead services left, forgets old runs, and has Redis' file rewritten.
// Every gateway process does this beside its calls (docs/decisions/0037-maintenance-is-beside-the-calls.md). Doubles are harmless.
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { defaultTimings, type StoreLogger, type StoreTimings } from '../timings.ts';
import { RollOuts, type Undone } from '../versions/roll-outs.ts';
import { AppendOnlyFile } from './append-only-file.ts';
import { ProjectIndex } from './project-index.ts';
import { Reaper } from './reaper.ts';
import { Rounds } from './rounds.ts';
import type { Shares } from './shares.ts';
import { Sweeper } from './sweeper.ts';

export interface MaintenanceOptions {
  readonly commands: Redis;
  readonly deliveries: DeliveryQueue;
  readonly logger: StoreLogger;
  /** The shares that calls are held to. Maintenance measures them. */
  readonly shares: Shares;
  readonly timings?: Partial<StoreTimings>;
  /** Bytes that runs may take in Redis (`RUN_STORE_MAX_BYTES`). If absent: 60 % of its `maxmemory`, or 1 GiB without a `maxmemory`. */
  readonly storeMaxBytes?: number;
  readonly undone?: Undone;
}

export class Maintenance {
  readonly #rounds: Rounds;

  constructor({ commands, deliveries, logger, shares, storeMaxBytes, undone, ...options }: MaintenanceOptions) {
    const timings = { ...defaultTimings, ...options.timings };
    const projects = new ProjectIndex(commands, timings.commandMs);
    const parts = { redis: commands, logger, timings, projects };
    this.#rounds = new Rounds([
      new Reaper(parts, deliveries),
      new Sweeper(parts, shares, storeMaxBytes),
      new AppendOnlyFile(parts),
      new RollOuts({ ...parts, undone }),
    ]);
  }

  start(): void {
    this.#rounds.start();
  }

  stop(): void {
    this.#rounds.stop();
  }
}
