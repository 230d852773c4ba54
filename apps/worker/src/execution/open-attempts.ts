// Contract 5: the attempts that this worker holds, for renewing leases and for passing on messages of the store.
import type { AttemptKey } from './run-writer.ts';

/** An attempt in progress, with its handlers for messages of the store. */
export interface OpenAttempt extends AttemptKey {
  /** Readers have taken items up to this number. */
  readTo(upTo: number): void;
  /** A client asked to cancel the run. */
  cancelled(): void;
  /** Another attempt has the lease, or the run has ended. This attempt must stop and write nothing. */
  lost(): void;
}

/** Holds every attempt from its take to its end. */
export class OpenAttempts<Run extends OpenAttempt> {
  readonly #byProject = new Map<string, Map<string, Run>>();
  #waiting: { readonly project: string | undefined; readonly resolve: () => void }[] = [];

  get size(): number {
    let size = 0;
    for (const runs of this.#byProject.values()) size += runs.size;
    return size;
  }

  add(run: Run): void {
    const runs = this.#byProject.get(run.project) ?? new Map<string, Run>();
    this.#byProject.set(run.project, runs);
    runs.set(run.runId, run);
  }

  remove(run: Run): void {
    const runs = this.#byProject.get(run.project);
    // The worker may have taken a lost run again as another attempt.
    if (runs?.get(run.runId) !== run) return;
    runs.delete(run.runId);
    if (runs.size > 0) return;
    this.#byProject.delete(run.project);
    const isEmpty = ({ project }: { project: string | undefined }): boolean =>
      project === undefined ? this.#byProject.size === 0 : !this.#byProject.has(project);
    for (const { resolve } of this.#waiting.filter(isEmpty)) resolve();
    this.#waiting = this.#waiting.filter((waiter) => !isEmpty(waiter));
  }

  /** Returns the attempt, or undefined if it has ended here or another attempt of its run is held. */
  find(attempt: AttemptKey): Run | undefined {
    const held = this.#byProject.get(attempt.project)?.get(attempt.runId);
    return held?.token === attempt.token ? held : undefined;
  }

  of(project: string): readonly Run[] {
    return [...(this.#byProject.get(project)?.values() ?? [])];
  }

  all(): readonly Run[] {
    return [...this.#byProject.values()].flatMap((runs) => [...runs.values()]);
  }

  /** Resolves when no run of the project is held; without a project, when no run is held. */
  async empty(project?: string): Promise<void> {
    if (project === undefined ? this.#byProject.size === 0 : !this.#byProject.has(project)) return;
    await new Promise<void>((resolve) => this.#waiting.push({ project, resolve }));
  }
}
