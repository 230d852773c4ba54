// Contract 3, "Pace": pulls a run's entries at the pace of the socket to which they are written.
import type { ServerResponse } from 'node:http';
import type { Outcome } from '@inference-proxy/contracts';
import type { RunEvent, RunReader } from '@inference-proxy/store';
import { Subscription, takeWhile, tap } from 'rxjs';

/**
 * A socket gets bytes until this many wait for it in this process. Its own limit (64 KiB) is smaller than some entries of a fast run.
 * With that limit, a reader that keeps up would read every entry from the log. Large items were four times slower.
 */
const FULL_BYTES = 128 * 1024;

/** Returns whether the socket accepts no further bytes now. `drain` reports when the socket accepts bytes again. */
export const isFull = (raw: ServerResponse): boolean => raw.writableLength > FULL_BYTES;

export type RunEntry = Exclude<RunEvent, { type: 'outcome' }>;

export type EntrySource = Pick<RunReader, 'events'>;

/** Receives the entries of a run. */
export interface EntryConsumer {
  next(entry: RunEntry): void;
  /** Called after the last entry. */
  finish(outcome: Outcome): void;
  /** Called if no further entry will arrive. */
  fail(thrown: unknown): void;
}

/** Pulls strictly: entries that the socket cannot take stay in the log, and are read from there when the socket has drained. */
export class EntryPull {
  #outcome: Outcome | undefined;
  #subscription = Subscription.EMPTY;

  readonly #raw: ServerResponse;
  readonly #reader: EntrySource;
  readonly #consumer: EntryConsumer;

  constructor(raw: ServerResponse, reader: EntrySource, consumer: EntryConsumer) {
    this.#raw = raw;
    this.#reader = reader;
    this.#consumer = consumer;
  }

  /** Starts or continues. */
  readonly start = (): void => {
    this.#subscription = this.#reader
      .events()
      .pipe(
        tap(this.#take),
        takeWhile(() => !isFull(this.#raw)),
      )
      .subscribe({ complete: this.#paused, error: this.#failed });
  };

  /** Stops taking entries. */
  stop(): void {
    this.#subscription.unsubscribe();
    this.#raw.off('drain', this.start);
  }

  readonly #take = (event: RunEvent): void => {
    if (event.type === 'outcome') this.#outcome = event.outcome;
    else this.#consumer.next(event);
  };

  /** The run's entries have ended, or the socket is full. */
  readonly #paused = (): void => {
    if (this.#outcome === undefined) {
      this.#raw.once('drain', this.start);
      return;
    }
    // RxJS throws an exception of a `complete` callback in a later turn of the event loop, which would end the gateway's process.
    try {
      this.#consumer.finish(this.#outcome);
    } catch (thrown) {
      this.#failed(thrown);
    }
  };

  readonly #failed = (thrown: unknown): void => {
    try {
      this.#consumer.fail(thrown);
    } catch {
      this.#raw.destroy();
    }
  };
}
