// Contract 3: writes a comment into a quiet stream every 15 s. One timer serves all streams of a gateway.

const TICK_MS = 1000;

/** A stream that may be quiet. */
export interface Quiet {
  /** Whole ticks since the last byte. Counting costs less at each write than reading a clock. */
  quietTicks: number;
  keepAlive(): void;
}

export class KeepAlive {
  readonly #streams = new Set<Quiet>();
  readonly #quietTicks: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(quietMs = 15_000) {
    this.#quietTicks = Math.ceil(quietMs / TICK_MS);
  }

  /** Number of open streams. */
  get size(): number {
    return this.#streams.size;
  }

  add(stream: Quiet): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(this.#tick, TICK_MS);
  }

  delete(stream: Quiet): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  readonly #tick = (): void => {
    for (const stream of this.#streams) {
      stream.quietTicks += 1;
      if (stream.quietTicks < this.#quietTicks) continue;
      stream.quietTicks = 0;
      stream.keepAlive();
    }
  };
}
