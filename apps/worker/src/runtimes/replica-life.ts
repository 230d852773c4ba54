// Contract 8: the life of one replica: state, open runs, last output, time limits and end. Every kind of replica has a life.
import type { ErrorFields, FunctionSpec, RunId } from '@inference-proxy/contracts';
import type { ProcessEnd } from './app-process.ts';
import { crashError } from './crash.ts';
import { PrintedLines } from './printed-lines.ts';
import type { KilledFor, ReplicaListener } from './replica.ts';
import { after, type ReplicaEvent, type ReplicaState, takesRuns } from './replica-states.ts';
import type { RunInFlight } from './run-in-flight.ts';

/** Lines of stderr that are kept to explain a crash. */
const STDERR_LINES = 40;

/** The steps of a replica that depend on its protocol. */
export interface ReplicaSteps {
  /** Owner of the process in error messages, such as `the function`. */
  readonly whose: string;
  readonly startupTimeoutMs: number;
  /** Returns the error of a start that took longer than `startupTimeoutMs`. */
  startTimedOut(): ErrorFields;
  /** Returns the error of a process that ended while it started. @param crash how the process ended @param lastLine its last line on stderr */
  endedWhileStarting(crash: string, lastLine: string | undefined): ErrorFields;
  /** Begins an orderly end: no further runs follow. */
  drain(): void;
  /** Ends the replica, because it takes no further runs and no run is open. May be called again. */
  end(state: 'retiring' | 'draining'): void;
  /** Ends the replica immediately. */
  kill(): void;
}

export class ReplicaLife {
  contained = false;
  proved = false;
  readonly runs = new Map<RunId, RunInFlight>();
  readonly #steps: ReplicaSteps;
  readonly #listener: ReplicaListener;
  readonly #stderr: string[] = [];
  /** Ends of runs that wait until their last output is read from the raw pipes. */
  readonly #settling = new Map<RunId, () => void>();
  #state: ReplicaState = 'spawning';
  #startTimer: NodeJS.Timeout | undefined;
  #endTimer: NodeJS.Timeout | undefined;

  constructor(steps: ReplicaSteps, listener: ReplicaListener) {
    this.#steps = steps;
    this.#listener = listener;
    listener.moved(undefined, this.#state);
    this.#startTimer = setTimeout(() => this.fail(steps.startTimedOut()), steps.startupTimeoutMs);
  }

  get state(): ReplicaState {
    return this.#state;
  }

  /** Returns the slots that `concurrency` leaves, if the replica takes runs. */
  freeSlots(concurrency: number): number {
    return takesRuns(this.#state) ? Math.max(0, concurrency - this.runs.size) : 0;
  }

  move(event: ReplicaEvent): void {
    const before = this.#state;
    this.#state = after(before, event);
    if (this.#state !== before) this.#listener.moved(before, this.#state);
  }

  /** The app serves. */
  ready(functions: readonly FunctionSpec[]): void {
    clearTimeout(this.#startTimer);
    this.move('ready');
    this.#listener.ready(functions);
  }

  /** The app did not start. */
  fail(error: ErrorFields): void {
    clearTimeout(this.#startTimer);
    this.move('failed');
    this.#listener.failed(error);
    this.#steps.kill();
  }

  /** Takes no further runs. The replica ends after its last run. */
  drain(): void {
    const before = this.#state;
    this.move('drain');
    if (this.#state === 'failed') this.#steps.kill();
    else if (this.#state !== before) {
      this.#steps.drain();
      this.endWhenIdle();
    }
  }

  /** Takes no further runs, because of a fault. Open runs continue. @param why the reason, as text for the log */
  retire(why: string): void {
    const before = this.#state;
    this.move('stuck');
    if (this.#state !== before) this.#listener.retiring(why);
  }

  endWhenIdle(): void {
    if (this.runs.size === 0 && (this.#state === 'retiring' || this.#state === 'draining'))
      this.#steps.end(this.#state);
  }

  /** Calls `act` if the replica has not ended after this time. Further calls do nothing. */
  endWithin(ms: number, act: () => void): void {
    this.#endTimer ??= setTimeout(act, ms);
  }

  /** Assigns lines from outside the interpreter to the open run, if there is exactly one. */
  lines(stream: 'stdout' | 'stderr', texts: readonly string[]): void {
    if (stream === 'stderr') {
      this.#stderr.push(...texts.slice(-STDERR_LINES));
      this.#stderr.splice(0, this.#stderr.length - STDERR_LINES);
    }
    const run = this.runs.size === 1 ? this.runs.values().next().value : undefined;
    const lines = PrintedLines.now(stream, texts);
    if (run) run.log(lines);
    else this.#listener.log(lines, undefined);
  }

  /** Ends an open run, and frees its slot. Does nothing if the run has ended. */
  endRun(run: RunInFlight, end: () => void): void {
    if (!this.runs.delete(run.runId)) return;
    end();
    this.endWhenIdle();
    this.#listener.freed();
  }

  /**
   * Ends a run that its process reported as ended.
   *
   * @param hasOutput whether the raw pipes may have output of this run. The next round of the event loop reads the output at the latest.
   */
  settle(run: RunInFlight, hasOutput: boolean, end: () => void): void {
    this.proved = true;
    if (!hasOutput || this.runs.size !== 1) {
      this.endRun(run, end);
      return;
    }
    const settled = (): void => {
      this.#settling.delete(run.runId);
      this.endRun(run, end);
    };
    this.#settling.set(run.runId, settled);
    setImmediate(() => setImmediate(settled));
  }

  /** Whether the process has reported the end of the run. The run then ends at once. */
  isSettling(run: RunInFlight): boolean {
    return this.#settling.has(run.runId);
  }

  /** The process has ended. @param killed set if the worker ended the process because of a fault */
  exited(how: ProcessEnd, killed: KilledFor | undefined): void {
    const { whose } = this.#steps;
    const crash: ErrorFields =
      how.killed && how.signal === 'SIGKILL'
        ? { code: 'replica_crashed', message: `${whose}'s process was ended by its worker` }
        : crashError(how, whose, this.#stderr);
    // Also if the worker killed the process: an app that closes or writes to foreign descriptors never becomes ready.
    if (this.#state === 'spawning' || this.#state === 'loading') {
      const last = this.#stderr.findLast((line) => line.trim() !== '');
      this.#listener.failed(this.#steps.endedWhileStarting(crash.message, last?.trim()));
    }
    this.over(crash, how, killed);
  }

  /** The replica has ended. @param error the error of its open runs */
  over(error: ErrorFields, { code, signal, overMemory }: Omit<ProcessEnd, 'killed'>, killed?: KilledFor): void {
    clearTimeout(this.#startTimer);
    clearTimeout(this.#endTimer);
    this.move('exit');
    for (const settled of this.#settling.values()) settled();
    for (const run of this.runs.values()) run.crashed(error);
    this.runs.clear();
    this.#listener.exited({ code, signal, overMemory, killed, stderr: this.#stderr });
  }
}
