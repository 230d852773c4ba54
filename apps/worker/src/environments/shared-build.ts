// Contract 7, "Dependencies": one build that several versions wait for. It is stopped when the last of them leaves.
import type { BuildLog } from './build-step.ts';

/** A later version receives the newest lines of the build. */
const KEPT_LINES = 500;

export class SharedBuild {
  readonly #logs = new Set<BuildLog>();
  #lines: string[] = [];
  readonly #stopping = new AbortController();
  readonly #result: Promise<string>;

  /** @param build returns the folder of the environment */
  constructor(build: (log: BuildLog, stopped: AbortSignal) => Promise<string>) {
    this.#result = build((lines) => this.#print(lines), this.#stopping.signal);
    this.#result.catch(() => {});
  }

  /** Whether the last waiting version has left. */
  get isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Returns the folder of the environment. @throws BuildFailed; the reason of `signal` */
  async join(log: BuildLog, signal: AbortSignal): Promise<string> {
    if (this.#lines.length > 0) log(this.#lines);
    // A function of its own, because the same log may join twice.
    const own: BuildLog = (lines) => log(lines);
    this.#logs.add(own);
    const left = Promise.withResolvers<never>();
    left.promise.catch(() => {});
    const leave = (): void => left.reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave);
    try {
      return await Promise.race([this.#result, left.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
      this.#logs.delete(own);
      if (this.#logs.size === 0) this.#stopping.abort();
    }
  }

  #print(lines: readonly string[]): void {
    this.#lines = [...this.#lines, ...lines].slice(-KEPT_LINES);
    for (const log of this.#logs) log(lines);
  }
}
