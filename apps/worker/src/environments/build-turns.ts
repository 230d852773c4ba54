// Contract 7, "Dependencies": the order of builds. A project has one build at a time, so other projects wait less.

/** Builds of one worker at a time. Each may take the whole memory limit of a build. */
const MOST = 2;

interface Waiting {
  readonly project: string;
  readonly start: () => void;
}

export class BuildTurns {
  /** Projects with a build. */
  readonly #building = new Set<string>();
  #waiting: Waiting[] = [];

  /** Resolves when a build of the project may start. The returned function ends the turn. @throws the reason of `signal` */
  async take(project: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { project, start: resolve };
    const leave = (): void => {
      this.#waiting = this.#waiting.filter((one) => one !== waiting);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave);
    this.#waiting.push(waiting);
    this.#next();
    await promise.finally(() => signal.removeEventListener('abort', leave));
    return () => {
      this.#building.delete(project);
      this.#next();
    };
  }

  #next(): void {
    for (const waiting of [...this.#waiting]) {
      if (this.#building.size >= MOST) return;
      if (this.#building.has(waiting.project)) continue;
      this.#building.add(waiting.project);
      this.#waiting = this.#waiting.filter((one) => one !== waiting);
      waiting.start();
    }
  }
}
