// Polling: often while somebody looks and things change, seldom in a hidden tab.
import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { recoveries } from './connection.ts';
import { Unreachable } from './request.ts';

/** Each unchanged answer makes the pause longer by this factor, up to `SLOWEST` times the first pause. */
const SLOWER = 1.25;
const SLOWEST = 3;
const HIDDEN_PAUSE_MS = 60_000;

export interface Polled<T> {
  readonly value: Signal<T | undefined>;
  readonly error: Signal<Error | undefined>;
  /** Loads now, for example after a change that this page made. */
  readonly refresh: () => void;
}

/**
 * Calls `load` at once and again after each pause. A lost gateway keeps the last value.
 *
 * @param key the load starts anew when the key changes
 * @param everyMs the shortest pause, in milliseconds
 */
export function usePolled<T>(key: string, load: (signal: AbortSignal) => Promise<T>, everyMs = 5_000): Polled<T> {
  const poll = useMemo(() => new Poll(load, everyMs), [key, everyMs]);
  useEffect(() => poll.run(), [poll]);
  return poll;
}

class Poll<T> implements Polled<T> {
  readonly value = signal<T | undefined>(undefined);
  readonly error = signal<Error | undefined>(undefined);
  readonly #load: (signal: AbortSignal) => Promise<T>;
  readonly #everyMs: number;
  #pauseMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #open: AbortController | undefined;
  #text = '';

  constructor(load: (signal: AbortSignal) => Promise<T>, everyMs: number) {
    this.#load = load;
    this.#everyMs = everyMs;
    this.#pauseMs = everyMs;
  }

  /** Polls until the returned function is called. */
  run(): () => void {
    const onVisible = (): void => {
      if (document.visibilityState === 'visible') this.refresh();
    };
    document.addEventListener('visibilitychange', onVisible);
    const unsubscribe = recoveries.subscribe(() => this.refresh());
    return () => {
      document.removeEventListener('visibilitychange', onVisible);
      unsubscribe();
      clearTimeout(this.#timer);
      this.#open?.abort();
    };
  }

  readonly refresh = (): void => {
    this.#pauseMs = this.#everyMs;
    void this.#round();
  };

  async #round(): Promise<void> {
    clearTimeout(this.#timer);
    this.#open?.abort();
    const open = new AbortController();
    this.#open = open;
    try {
      this.#keep(await this.#load(open.signal));
    } catch (error) {
      if (open.signal.aborted) return;
      // The banner reports a lost gateway. The recovery starts the next round.
      if (!(error instanceof Unreachable)) this.error.value = error as Error;
    }
    if (open.signal.aborted) return;
    const pauseMs = document.visibilityState === 'hidden' ? HIDDEN_PAUSE_MS : this.#pauseMs;
    this.#timer = setTimeout(() => void this.#round(), pauseMs);
  }

  #keep(value: T): void {
    this.error.value = undefined;
    const text = JSON.stringify(value);
    this.#pauseMs = text === this.#text ? Math.min(this.#pauseMs * SLOWER, this.#everyMs * SLOWEST) : this.#everyMs;
    if (text === this.#text) return;
    this.#text = text;
    this.value.value = value;
  }
}
