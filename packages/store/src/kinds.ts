// What is the same for many runs of one script call is told once: each run names its kind.
import type { ScriptArgument } from './message-pack.ts';

export class Kinds {
  /** Of all kinds, one after the other. */
  readonly values: ScriptArgument[] = [];
  private readonly numbers = new Map<string, number>();

  get count(): number {
    return this.numbers.size;
  }

  /** The number, from 1, of the kind with these values: always as many, none of them bytes. */
  number(values: readonly (string | number)[]): number {
    const key = values.join('\n');
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    const number = this.numbers.size + 1;
    this.numbers.set(key, number);
    this.values.push(...values);
    return number;
  }
}
