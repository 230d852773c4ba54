// Records the calls, answers and events of one round for the model, which judges them afterwards. The history knows the contract, and nothing
// of the store's implementation.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Outcome, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Plan } from './schedule.ts';

const MOST_TRIES = 200;

/** One reading of a run by one caller. It may use several readers. */
export interface Reading {
  readonly runId: RunId;
  readonly mode: 'items' | 'outcome';
  /** Number of the last item before the reading. */
  readonly from: number;
  readonly texts: string[];
  outcome?: Outcome;
  /** The present reader has returned an item, so the store knows the reader. */
  served: boolean;
  /** The reading failed because its next items are no longer kept. */
  gone: boolean;
  /** The reading failed because there is no such run. */
  missed: boolean;
  /** The caller disconnected, or its gateway died. */
  left: boolean;
  /** The caller's gateway died during the reading. */
  orphaned: boolean;
  settled: boolean;
}

/** A run from the view of its callers and workers. */
export interface KnownRun {
  readonly runId: RunId;
  readonly plan: Plan;
  readonly key?: string;
  /** Fingerprint of the run's request, if the run has a key. */
  readonly fingerprint?: string;
  /** False if only the run's readers want it. Such a run may be evicted after its end. */
  promised: boolean;
  /** The run is a plain stream: only a window of its items is kept. */
  windowed: boolean;
  /** The run was evicted to make room. */
  evicted: boolean;
  /** The run was accepted, and a cancel did not find it. */
  missed: boolean;
  /** The caller reads the run live. The run is cancelled after its last reader has disconnected. */
  plainly: boolean;
  answer: 'asked' | 'accepted' | 'cancelled' | 'unanswered' | 'other';
  /** True after a disconnect, the death of a gateway, an unanswered accept, or a cancel. */
  mayBeCancelled: boolean;
  /** A cancel was answered with `queued`, or arrived before the run. */
  neverStarts: boolean;
  /** Ids of the gateways at which callers have read the run. */
  readonly readAt: Set<string>;
  /** Tokens of the run's attempts, as workers received them from `take`. */
  readonly starts: string[];
  /** Outcomes from any source. */
  readonly outcomes: { where: string; outcome: Outcome }[];
}

/** Returns the store's answer. Repeats the call while the store is `unavailable`, because the test must see the state during any fault. */
export async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === 'unavailable') || tries === MOST_TRIES) throw error;
      await sleep(20);
    }
  }
}

export class History {
  readonly runs = new Map<RunId, KnownRun>();
  readonly readings: Reading[] = [];
  readonly violations: string[] = [];
  /** The project's share was small for some time. */
  tightened = false;
  /**
   * By id: longest time (ms) in which the store did not renew the lease of a worker while it held runs, or of a gateway while it had readers.
   */
  readonly #silence = new Map<string, number>();

  /** @param key the run's idempotency key, then optionally a space and the fingerprint of the request */
  add(runId: RunId, plan: Plan, key?: string): KnownRun {
    const [name, fingerprint = 'f'] = key?.split(' ') ?? [];
    const run: KnownRun = {
      runId,
      plan,
      ...(name !== undefined && { key: name, fingerprint }),
      promised: true,
      windowed: false,
      evicted: false,
      missed: false,
      plainly: false,
      answer: 'asked',
      mayBeCancelled: false,
      neverStarts: false,
      readAt: new Set(),
      starts: [],
      outcomes: [],
    };
    this.runs.set(runId, run);
    return run;
  }

  run(runId: RunId): KnownRun {
    const run = this.runs.get(runId);
    if (!run) throw new Error(`the history has no run ${runId}`);
    return run;
  }

  silent(id: string, ms: number): void {
    this.#silence.set(id, Math.max(ms, this.silenceOf(id)));
  }

  silenceOf(id: string): number {
    return this.#silence.get(id) ?? 0;
  }

  saw(runId: RunId, where: string, outcome: Outcome): void {
    this.run(runId).outcomes.push({ where, outcome });
  }

  violated(text: string): void {
    this.violations.push(text);
  }
}
