// Contract 3, "Pace": how far a plain stream may be ahead of its fastest reader.

/** Limits of items and bytes that no reader has taken. At a limit, the server waits. A chunk that was read already may exceed the limit. */
const WINDOW_ITEMS = 2_048;
const WINDOW_BYTES = 1024 * 1024;

export class Credits {
  #items = 0;
  #taken = 0;
  #bytes = 0;
  /** Sizes of the items that are not yet taken, oldest first. */
  readonly #open: { readonly upTo: number; readonly bytes: number }[] = [];

  /** Records sent items. */
  gave(count: number, bytes: number): void {
    this.#items += count;
    if (this.#items <= this.#taken) return;
    this.#bytes += bytes;
    this.#open.push({ upTo: this.#items, bytes });
  }

  /** Records that a reader has the items up to this number. */
  took(upTo: number): void {
    this.#taken = Math.max(this.#taken, upTo);
    let done = 0;
    for (; (this.#open[done]?.upTo ?? Number.POSITIVE_INFINITY) <= this.#taken; done++)
      this.#bytes -= this.#open[done]?.bytes ?? 0;
    this.#open.splice(0, done);
  }

  /** Bytes without credit. */
  get bytes(): number {
    return this.#bytes;
  }

  get spent(): boolean {
    return this.#items - this.#taken >= WINDOW_ITEMS || this.#bytes >= WINDOW_BYTES;
  }
}
