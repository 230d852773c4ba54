// Contract 3, "Pace": a run's entries at the pace of the socket that they are written to.
import type { ServerResponse } from 'node:http';
import type { Outcome } from '@inference-proxy/contracts';
import type { RunEvent, RunReader } from '@inference-proxy/store';
import { Subscription, takeWhile, tap } from 'rxjs';

/**
 * A socket is written to until that much waits for it in this process. Its own limit (64 KiB) is less than one entry of a fast run can have: a reader
 * that keeps up would be sent back to the log at every entry, which made large items four times slower.
 */
const FULL_BYTES = 128 * 1024;

/** Its socket takes nothing more for now; `drain` tells when it does. */
export const isFull = (raw: ServerResponse): boolean => raw.writableLength > FULL_BYTES;

export type RunEntry = Exclude<RunEvent, { type: 'outcome' }>;

/** What becomes of the entries. */
export interface EntryTaker {
  take(entry: RunEntry): void;
  /** All have been taken. */
  finish(outcome: Outcome): void;
  /** No more will come. */
  fail(thrown: unknown): void;
}

/** Strict pull: what does not fit stays in the log, and is read from there when the socket has drained. */
export class EntryPull {
  #outcome: Outcome | undefined;
  #subscription = Subscription.EMPTY;

  constructor(
    private readonly raw: ServerResponse,
    private readonly reader: RunReader,
    private readonly taker: EntryTaker,
  ) {}

  /** Begins, or goes on. */
  readonly start = (): void => {
    this.#subscription = this.reader
      .events()
      .pipe(
        tap(this.#take),
        takeWhile(() => !isFull(this.raw)),
      )
      .subscribe({ complete: this.#paused, error: this.#failed });
  };

  /** Takes nothing more. */
  stop(): void {
    this.#subscription.unsubscribe();
    this.raw.off('drain', this.start);
  }

  readonly #take = (event: RunEvent): void => {
    if (event.type === 'outcome') this.#outcome = event.outcome;
    else this.taker.take(event);
  };

  /** The run's entries end, or the socket is full. */
  readonly #paused = (): void => {
    if (this.#outcome === undefined) {
      this.raw.once('drain', this.start);
      return;
    }
    // RxJS throws what a `complete` callback throws in a turn of its own, which would end this process.
    try {
      this.taker.finish(this.#outcome);
    } catch (thrown) {
      this.#failed(thrown);
    }
  };

  readonly #failed = (thrown: unknown): void => {
    try {
      this.taker.fail(thrown);
    } catch {
      this.raw.destroy();
    }
  };
}
