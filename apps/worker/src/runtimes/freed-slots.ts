// Contract 8: reports free slots. Every pool of the worker publishes here, and the intake of each project subscribes.

export class FreedSlots {
  readonly #subscribers = new Map<string, () => void>();

  /** Reports that slots of the project's apps may have become free: a run has ended, or a process has become ready. */
  publish(project: string): void {
    this.#subscribers.get(project)?.();
  }

  /** Calls `look` after each report of the project. A project has one subscriber. */
  subscribe(project: string, look: () => void): void {
    this.#subscribers.set(project, look);
  }

  unsubscribe(project: string): void {
    this.#subscribers.delete(project);
  }
}
