// runtimes: a run that was given to an app just when it lost its free slot (its process crashed): it waits for the next one.
import type { ErrorFields } from '@inference-proxy/contracts';
import { cancelledBeforeStart, notStarted } from './run-in-flight.ts';
import type { CancelReason, RunListener, RunningRun, RunRequest } from './runtime.ts';

/** What a waiting run is started on. */
interface Slot {
  run(request: RunRequest, listener: RunListener): RunningRun;
}

/** Stands for the run until it has started, and passes on what is asked of it then. */
export class WaitingRun implements RunningRun {
  #running: RunningRun | undefined;
  #over = false;
  readonly #timer: NodeJS.Timeout;

  /** Until the run starts or ends. */
  #request: RunRequest | undefined;
  readonly #listener: RunListener;
  readonly #left: () => void;

  /** @param left called once, when it no longer waits */
  constructor(request: RunRequest, listener: RunListener, timeoutMs: number, left: () => void) {
    this.#request = request;
    this.#listener = listener;
    this.#left = left;
    this.#timer = setTimeout(() => this.cancel('timed_out'), timeoutMs);
  }

  startOn(slot: Slot): void {
    const request = this.#request;
    if (!this.#leave() || !request) return;
    this.#running = slot.run(request, this.#listener);
  }

  /** The app does not start. */
  refuse(error: ErrorFields): void {
    if (this.#leave()) this.#listener.ended(notStarted('failed', error));
  }

  cancel(reason: CancelReason): void {
    if (this.#running) this.#running.cancel(reason);
    else if (this.#leave()) this.#listener.ended(cancelledBeforeStart(reason));
  }

  credit(upTo: number): void {
    this.#running?.credit(upTo);
  }

  pause(): void {
    this.#running?.pause();
  }

  resume(): void {
    this.#running?.resume();
  }

  #leave(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#request = undefined;
    clearTimeout(this.#timer);
    this.#left();
    return true;
  }
}
