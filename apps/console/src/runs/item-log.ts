// The items of a stream, as they arrive. The page draws at most once a frame, however fast items come.
import { signal } from '@preact/signals';

/** A page must not use all memory of its machine. The oldest items go first. */
const MOST_ITEMS = 200_000;
const MOST_CHARACTERS = 64_000_000;

export class ItemLog {
  readonly #texts: string[] = [];
  #characters = 0;
  #dropped = 0;
  #drawing = false;
  /** The number of items that the list shows. */
  readonly shown = signal(0);
  /** The number of items that have arrived. */
  readonly arrived = signal(0);
  readonly paused = signal(false);
  /** The number of the oldest items that the page no longer has. */
  readonly dropped = signal(0);

  /** @param text the item, as the stream has it */
  add(text: string): void {
    this.#texts.push(text);
    this.#characters += text.length;
    if (!this.#drawing) {
      this.#drawing = true;
      requestAnimationFrame(() => this.#draw());
    }
  }

  /** Stops the list. Items still arrive. */
  pause(): void {
    this.paused.value = true;
  }

  /** Shows all items that arrived in the meantime. */
  resume(): void {
    this.paused.value = false;
    this.#draw();
  }

  /** Returns the item of a row. */
  at(row: number): string {
    return this.#texts[row] ?? '';
  }

  all(): readonly string[] {
    return this.#texts;
  }

  #draw(): void {
    this.#drawing = false;
    if (!this.paused.peek()) {
      this.#bound();
      this.shown.value = this.#texts.length;
    }
    this.arrived.value = this.#texts.length + this.#dropped;
  }

  #bound(): void {
    if (this.#texts.length <= MOST_ITEMS && this.#characters <= MOST_CHARACTERS) return;
    let count = 0;
    while (this.#texts.length - count > MOST_ITEMS / 2 || this.#characters > MOST_CHARACTERS) {
      this.#characters -= this.#texts[count]?.length ?? 0;
      count += 1;
      if (count >= this.#texts.length - 1) break;
    }
    this.#texts.splice(0, count);
    this.#dropped += count;
    this.dropped.value = this.#dropped;
  }
}
