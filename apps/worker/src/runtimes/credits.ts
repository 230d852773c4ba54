// Contract 3, pace: how far a plain stream may be ahead of its fastest reader.

/** Items and bytes that nobody has taken yet: with more, the server has to wait. What was read at once goes on at once, so it may be a little more. */
const WINDOW_ITEMS = 2_048;
const WINDOW_BYTES = 1024 * 1024;

export class Credits {
  #items = 0;
  #taken = 0;
  #bytes = 0;
  /** Sizes of what is not yet taken, oldest first. */
  readonly #open: { readonly upTo: number; readonly bytes: number }[] = [];

  /** Items went out. */
  gave(count: number, bytes: number): void {
    this.#items += count;
    if (this.#items <= this.#taken) return;
    this.#bytes += bytes;
    this.#open.push({ upTo: this.#items, bytes });
  }

  /** A reader has items up to this number. */
  took(upTo: number): void {
    this.#taken = Math.max(this.#taken, upTo);
    let done = 0;
    for (; (this.#open[done]?.upTo ?? Number.POSITIVE_INFINITY) <= this.#taken; done++)
      this.#bytes -= this.#open[done]?.bytes ?? 0;
    this.#open.splice(0, done);
  }

  /** Bytes for which no credit has come. */
  get bytes(): number {
    return this.#bytes;
  }

  get spent(): boolean {
    return this.#items - this.#taken >= WINDOW_ITEMS || this.#bytes >= WINDOW_BYTES;
  }
}
