// Contract 3: collects a server's items into frames of one kind (see `ItemsFrame`).
import type { ItemKind } from '@inference-proxy/contracts';
import type { ItemsFrame } from '../runtime.ts';

/** Collects the items of one chunk. Sends as many frames as the kinds of the items need. */
export class ItemFrames {
  #kind: ItemKind = 's';
  #texts: string[] = [];
  readonly #pass: (frame: ItemsFrame) => void;

  constructor(pass: (frame: ItemsFrame) => void) {
    this.#pass = pass;
  }

  /** Adds a string. */
  text(text: string): void {
    this.#add(text.includes('\n') ? 'm' : 's', text);
  }

  /** Adds a JSON text without newlines. */
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
