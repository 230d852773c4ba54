// Contract 7: the replaced versions of an app. Each version ends its last runs; a deployed version first takes the runs of its queue.
import type { Runtime } from '../runtimes/runtime.ts';
import type { Started } from './offered-version.ts';

/** A version that waits for the end of its last runs. */
interface Leaving {
  readonly left: Promise<void>;
  /** The version's fixed port, if its manifest names a port. */
  readonly port: number | undefined;
}

const portOf = ({ manifest }: Started): number | undefined => manifest?.server?.port;

/** Versions that were replaced, from their replacement to the end of their processes. */
export class OldVersions {
  /** Deployed versions that were active, while their queues may have runs. */
  readonly #retiring = new Set<Started>();
  readonly #leaving = new Map<Runtime, Leaving>();

  /** Returns the versions whose queues may have runs. */
  get retiring(): readonly Started[] {
    return [...this.#retiring];
  }

  /** Returns whether the version's queue may have runs. */
  isRetiring(started: Started): boolean {
    return this.#retiring.has(started);
  }

  /** Returns the named version while it takes the runs of its queue. */
  retired(version: string): Started | undefined {
    return this.retiring.find((started) => started.version === version && started.runtime?.state === 'ready');
  }

  /** Lets a version take the runs that are left in its queue. */
  retire(started: Started): void {
    this.#retiring.add(started);
  }

  /** Forgets a version that becomes active again. */
  takeBack(started: Started): void {
    this.#retiring.delete(started);
  }

  /** Ends a version whose queue is empty or moves to the active version. Returns false if the version has left before. */
  emptied(started: Started): boolean {
    if (!this.#retiring.delete(started)) return false;
    this.leave(started);
    return true;
  }

  /** Lets a version end its runs. Each run has a time limit. */
  leave(started: Started): void {
    const { runtime } = started;
    if (!runtime) return;
    const left = runtime.drain().finally(() => this.#leaving.delete(runtime));
    this.#leaving.set(runtime, { left, port: portOf(started) });
  }

  /** Returns whether an old version uses the fixed port. */
  usesPort(port: number): boolean {
    return this.retiring.some((started) => portOf(started) === port) || this.#leavingPort(port).length > 0;
  }

  /** Resolves when the versions that leave now have left the port. */
  async portFree(port: number): Promise<void> {
    await Promise.all(this.#leavingPort(port));
  }

  /** Waits for the runs of all old versions until `signal` fires, then ends their processes. Resolves when all processes have ended. */
  async drain(signal?: AbortSignal): Promise<void> {
    for (const started of this.retiring) this.emptied(started);
    const close = (): void => {
      for (const runtime of this.#leaving.keys()) void runtime.close();
    };
    if (signal?.aborted) close();
    signal?.addEventListener('abort', close);
    await Promise.all([...this.#leaving.values()].map(({ left }) => left));
    signal?.removeEventListener('abort', close);
  }

  #leavingPort(port: number): Promise<void>[] {
    return [...this.#leaving.values()].filter((leaving) => leaving.port === port).map(({ left }) => left);
  }
}
