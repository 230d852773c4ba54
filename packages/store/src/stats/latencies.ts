// Contract 5, "Statistics": the latencies of ended runs, counted by ranges (parts/ending.lua is the other side).

/** Ranges of a factor of two. The middle of a range is within 10 % of every latency in the range. */
const RANGES_OF_TWO = 4;
const ERROR = /^e/;

/** Numbers of ended runs. */
export class Latencies {
  readonly #counts = new Map<number, number>();
  #calls = 0;
  #errors = 0;

  get calls(): number {
    return this.#calls;
  }

  /** Runs that failed, timed out or expired. */
  get errors(): number {
    return this.#errors;
  }

  /** Adds runs. @param field a field of the counters: the number of a range, after `e` for errors */
  add(field: string, runs: number): void {
    const range = Number(field.replace(ERROR, ''));
    this.#counts.set(range, (this.#counts.get(range) ?? 0) + runs);
    this.#calls += runs;
    if (ERROR.test(field)) this.#errors += runs;
  }

  addAll(other: Latencies): void {
    for (const [range, runs] of other.#counts) this.#counts.set(range, (this.#counts.get(range) ?? 0) + runs);
    this.#calls += other.#calls;
    this.#errors += other.#errors;
  }

  /** Returns an estimate of the latency in ms that a share of the runs does not exceed, or undefined without runs. @param share 0 to 1 */
  quantile(share: number): number | undefined {
    let rest = Math.max(1, Math.ceil(share * this.#calls));
    for (const [range, runs] of [...this.#counts].sort(([one], [other]) => one - other)) {
      rest -= runs;
      if (rest <= 0) return middleOf(range);
    }
    return undefined;
  }
}

/** Returns the geometric middle of a range in ms, with three digits. */
function middleOf(range: number): number {
  const middle = range === 0 ? 0.5 : 2 ** ((range - 0.5) / RANGES_OF_TWO);
  return Number(middle.toPrecision(3));
}
