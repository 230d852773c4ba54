// Contract 7, "Versions": lets a gateway wait for a change of a project's versions, such as a line of a version's log.
import type { Redis } from 'ioredis';
import { DeployedChannel } from './deployed-channel.ts';

/** A message may be lost. After this time the waiting reader looks anyway. */
const SILENCE_MS = 2_000;

export class VersionChanges {
  /** Wakes of waiting readers, by project. */
  readonly #waiting = new Map<string, Set<() => void>>();
  #listening: Promise<void> | undefined;

  readonly #channel: DeployedChannel;

  constructor(subscriber: Redis) {
    this.#channel = new DeployedChannel(subscriber, (project) => this.#wake(project));
  }

  /** Resolves at the next change, after a silence, or when `signal` fires. Subscribes at the first call. */
  async next(project: string, signal: AbortSignal): Promise<void> {
    this.#listening ??= this.#channel.listen().catch(() => {
      this.#listening = undefined;
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    const wakes = this.#waiting.get(project) ?? new Set();
    this.#waiting.set(project, wakes.add(resolve));
    const timer = setTimeout(resolve, SILENCE_MS);
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    await promise;
    clearTimeout(timer);
    wakes.delete(resolve);
    if (wakes.size === 0 && this.#waiting.get(project) === wakes) this.#waiting.delete(project);
  }

  close(): void {
    this.#channel.close();
  }

  #wake(project: string | undefined): void {
    const woken = project === undefined ? [...this.#waiting.values()] : [this.#waiting.get(project)];
    for (const wakes of woken) for (const wake of wakes ?? []) wake();
  }
}
