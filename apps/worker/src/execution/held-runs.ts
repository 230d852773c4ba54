// The attempts this worker holds: what leases renew, and where the store's words about a run go.
import type { HeldAttempt } from './run-writer.ts';

/** One attempt under way, as the store's words reach it. */
export interface HeldRun extends HeldAttempt {
  /** Readers have taken items up to this number. */
  taken(upTo: number): void;
  /** Somebody asked to cancel it. */
  cancelled(): void;
  /** Its lease is another's, or the run has ended: it must stop and write nothing. */
  lost(): void;
}

/** Every attempt between its take and its end. */
export class HeldRuns<Run extends HeldRun> {
  private readonly byProject = new Map<string, Map<string, Run>>();
  private waiting: { readonly project: string | undefined; readonly resolve: () => void }[] = [];

  get size(): number {
    let size = 0;
    for (const runs of this.byProject.values()) size += runs.size;
    return size;
  }

  add(run: Run): void {
    const runs = this.byProject.get(run.project) ?? new Map<string, Run>();
    this.byProject.set(run.project, runs);
    runs.set(run.runId, run);
  }

  remove(run: Run): void {
    const runs = this.byProject.get(run.project);
    // A run that was lost here may have come back to this worker as another attempt.
    if (runs?.get(run.runId) !== run) return;
    runs.delete(run.runId);
    if (runs.size > 0) return;
    this.byProject.delete(run.project);
    const isEmpty = ({ project }: { project: string | undefined }): boolean =>
      project === undefined ? this.byProject.size === 0 : !this.byProject.has(project);
    for (const { resolve } of this.waiting.filter(isEmpty)) resolve();
    this.waiting = this.waiting.filter((waiter) => !isEmpty(waiter));
  }

  /** The attempt, unless it has ended here or is another one of the same run. */
  find(attempt: HeldAttempt): Run | undefined {
    const held = this.byProject.get(attempt.project)?.get(attempt.runId);
    return held?.token === attempt.token ? held : undefined;
  }

  of(project: string): readonly Run[] {
    return [...(this.byProject.get(project)?.values() ?? [])];
  }

  all(): readonly Run[] {
    return [...this.byProject.values()].flatMap((runs) => [...runs.values()]);
  }

  /** Resolves when nothing of the project is held; without one, nothing at all. */
  async empty(project?: string): Promise<void> {
    if (project === undefined ? this.byProject.size === 0 : !this.byProject.has(project)) return;
    await new Promise<void>((resolve) => this.waiting.push({ project, resolve }));
  }
}
