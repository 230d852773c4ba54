// Contract 8: a run whose app lost its free slot at the moment of the take (a crash). The run waits for the next slot.
import type { ErrorFields } from '@inference-proxy/contracts';
import { cancelledBeforeStart, notStarted } from './run-in-flight.ts';
import type { CancelReason, RunListener, RunningRun, RunRequest } from './runtime.ts';

/** Starts the waiting run. */
interface Slot {
  run(request: RunRequest, listener: RunListener): RunningRun;
}

/** Represents the run until it starts, then passes on every call. */
export class WaitingRun implements RunningRun {
  #running: RunningRun | undefined;
  #over = false;
  readonly #timer: NodeJS.Timeout;

  /** Kept until the run starts or ends. */
  #request: RunRequest | undefined;
  readonly #listener: RunListener;
  readonly #left: () => void;

  /** @param left called once, when the run stops waiting */
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

  /** Ends the run because the app does not start. */
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
