// The store's clock as a gateway knows it: the last time that Redis sent, moved on by this machine's monotonic clock.

export class StoreClock {
  #storeMs = Number.NaN;
  #receivedAt = 0;

  /** @param storeMs the store's time in an answer that has just arrived */
  set(storeMs: number): void {
    this.#storeMs = storeMs;
    this.#receivedAt = performance.now();
  }

  get known(): boolean {
    return !Number.isNaN(this.#storeMs);
  }

  /** The store's time now, in ms. It is behind by the network delay at most. */
  now(): number {
    return Math.round(this.#storeMs + performance.now() - this.#receivedAt);
  }
}
