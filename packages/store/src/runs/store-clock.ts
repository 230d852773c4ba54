// The store's clock as a gateway knows it: the last time that Redis sent, moved on by this machine's monotonic clock.

export class StoreClock {
  #told = Number.NaN;
  #toldAt = 0;

  /** @param storeMs the store's time in an answer that has just arrived */
  set(storeMs: number): void {
    this.#told = storeMs;
    this.#toldAt = performance.now();
  }

  get known(): boolean {
    return !Number.isNaN(this.#told);
  }

  /** The store's time now, in ms. It is behind by the network delay at most. */
  now(): number {
    return Math.round(this.#told + performance.now() - this.#toldAt);
  }
}
