// What was asked, told and seen in one round; the model judges it afterwards. It knows the contract and nothing of the store's insides.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Outcome, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Plan } from './schedule.ts';

const MOST_TRIES = 200;

/** One reading of a run by one caller, over however many readers it took. */
export interface Reading {
  readonly runId: RunId;
  readonly mode: 'items' | 'outcome';
  /** Items up to this one it did not ask for. */
  readonly from: number;
  readonly texts: string[];
  outcome?: Outcome;
  /** Its present reader has given it an item: then it is known to the store. */
  served: boolean;
  /** It was told that its next items are kept no longer. */
  gone: boolean;
  /** It was told that there is no such run. */
  missed: boolean;
  /** It went away by itself, or its gateway died. */
  left: boolean;
  settled: boolean;
}

/** A run as its callers and workers know it. */
export interface KnownRun {
  readonly runId: RunId;
  readonly plan: Plan;
  readonly key?: string;
  /** Of its request, where it has a key. */
  readonly fingerprint?: string;
  /** Nothing but its readers wants it: it may go for room when it has ended. */
  promised: boolean;
  /** A plain stream: only a window of it is kept. */
  windowed: boolean;
  /** It went for room. */
  evicted: boolean;
  /** A cancel did not find it, though it was accepted. */
  missed: boolean;
  /** Called plainly: it is cancelled when its last reader leaves. */
  plainly: boolean;
  told: 'asked' | 'accepted' | 'cancelled' | 'unanswered' | 'other';
  /** A reader left, its gateway died, it was unanswered, or somebody asked for its cancel. */
  mayBeCancelled: boolean;
  /** A cancel was answered with `queued`, or came before the run. */
  neverStarts: boolean;
  /** Attempts by their tokens, as workers got them from `take`. */
  readonly starts: string[];
  /** Outcomes seen anywhere. */
  readonly outcomes: { where: string; outcome: Outcome }[];
}

/** The store's answer, asked for again while it is `unavailable`: the test itself looks on, whatever goes on. */
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
  /** For a while the project's share was small. */
  tightened = false;
  /** By worker id: longest time (ms) without word from it to the store while it held runs. */
  readonly silence = new Map<string, number>();

  /** @param key under which it is called, and after a space its request's fingerprint */
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
      told: 'asked',
      mayBeCancelled: false,
      neverStarts: false,
      starts: [],
      outcomes: [],
    };
    this.runs.set(runId, run);
    return run;
  }

  run(runId: RunId): KnownRun {
    const run = this.runs.get(runId);
    if (!run) throw new Error(`a run that nobody asked for: ${runId}`);
    return run;
  }

  silent(workerId: string, ms: number): void {
    this.silence.set(workerId, Math.max(ms, this.silence.get(workerId) ?? 0));
  }

  saw(runId: RunId, where: string, outcome: Outcome): void {
    this.run(runId).outcomes.push({ where, outcome });
  }

  violated(text: string): void {
    this.violations.push(text);
  }
}
