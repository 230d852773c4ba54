// Encodes values that many runs of one script call share. Each kind of values is sent once, and each run names its kind.
import type { ScriptArgument } from './message-pack.ts';

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
