// An item's way, a server's part: items as they are read, gathered into frames of one kind (see `ItemsFrame`).
import type { ItemKind } from '@inference-proxy/contracts';
import type { ItemsFrame } from '../runtime.ts';

/** What is read at once goes on at once: so many frames as the kinds of its items need. */
export class ItemFrames {
  #kind: ItemKind = 's';
  #texts: string[] = [];
  readonly #pass: (frame: ItemsFrame) => void;

  constructor(pass: (frame: ItemsFrame) => void) {
    this.#pass = pass;
  }

  /** A string. */
  text(text: string): void {
    this.#add(text.includes('\n') ? 'm' : 's', text);
  }

  /** A JSON text without newlines. */
  json(text: string): void {
    this.#add('j', text);
  }

  flush(): void {
    if (this.#texts.length === 0) return;
    const texts = this.#texts;
    this.#texts = [];
    this.#pass({ kind: this.#kind, count: texts.length, blob: Buffer.from(texts.join('\n')) });
  }

  #add(kind: ItemKind, text: string): void {
    if (kind !== this.#kind || kind === 'm') this.flush();
    this.#kind = kind;
    this.#texts.push(text);
  }
}
