// One supervised part of the stack: starts it, restarts it with back-off after its death, and stops it once.
import { setTimeout } from 'node:timers/promises';
import { signal } from './processes.ts';
import type { Running } from './service.ts';

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 10_000;
/** A part that ran this long has recovered: its next death counts as the first. */
const STEADY_MS = 10_000;
/** The start fails if a part was never ready in this many attempts. */
const START_ATTEMPTS = 3;

export interface PartSpec {
  readonly name: string;
  start(signal: AbortSignal, started: (pid: number) => void): Promise<Running>;
}

export interface Surroundings {
  say(text: string): void;
  /** Called when the process of the part changes or ends. */
  changed(name: string, pid: number | undefined): void;
}

export class Part {
  readonly name: string;
  readonly #spec: PartSpec;
  readonly #around: Surroundings;
  readonly #stopping = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  #running: Running | undefined;
  /** Set during a restart on purpose. */
  #again: PromiseWithResolvers<void> | undefined;
  /** Set from the spawn on, before the part is ready, because `kill` needs the pid. */
  #pid: number | undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(spec: PartSpec, around: Surroundings) {
    this.name = spec.name;
    this.#spec = spec;
    this.#around = around;
  }

  /** Starts the part. Resolves when the part is ready for the first time. @throws Error if three attempts failed */
  begin(): Promise<void> {
    this.#loop = this.#keepRunning();
    return this.#ready.promise;
  }

  /** Ends the part for good. May be called before the start, during the start, and twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running?.stop();
    await this.#loop;
  }

  /** Stops the part in order and starts it again. Resolves when the part is ready. */
  async restart(): Promise<void> {
    const running = this.#running;
    if (!running) throw new Error(`${this.name} is not running`);
    this.#again = Promise.withResolvers<void>();
    const { promise } = this.#again;
    await running.stop();
    await promise;
  }

  /** Ends the part like `stop`, but kills its process group immediately. */
  async kill(): Promise<void> {
    this.#stopping.abort();
    if (this.#pid !== undefined) signal(-this.#pid, 'SIGKILL');
    await this.#loop;
  }

  #is(pid: number | undefined): void {
    this.#pid = pid;
    this.#around.changed(this.name, pid);
  }

  async #keepRunning(): Promise<void> {
    let failures = 0;
    let everReady = false;
    while (!this.#stopping.signal.aborted) {
      const began = Date.now();
      let reason: string;
      try {
        this.#running = await this.#spec.start(this.#stopping.signal, (pid) => this.#is(pid));
        this.#is(this.#running.pid);
        everReady = true;
        this.#ready.resolve();
        this.#again?.resolve();
        this.#again = undefined;
        if (this.#stopping.signal.aborted) await this.#running.stop();
        reason = await this.#running.exited;
      } catch (error) {
        reason = (error as Error).message;
      }
      this.#running = undefined;
      this.#is(undefined);
      if (this.#stopping.signal.aborted) break;
      if (this.#again) continue;
      if (Date.now() - began > STEADY_MS) failures = 0;
      failures++;
      if (!everReady && failures === START_ATTEMPTS) {
        this.#ready.reject(new Error(`${this.name} does not start: ${reason}`));
        return;
      }
      const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), LONGEST_DELAY_MS);
      this.#around.say(`${this.name} ended (${reason}); starting it again in ${delayMs / 1000} s`);
      await setTimeout(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
    }
    // A part that is stopped during its start never becomes ready, so `begin` rejects.
    this.#ready.reject(new Error(`${this.name} was stopped`));
  }
}
