// Contract 8: one replica of an app's functions: its state, its runs, and the steps that end a cancelled run.
import type { ErrorFields, FunctionSpec, RunId } from '@inference-proxy/contracts';
import type { ProcessEnd } from './app-process.ts';
import { crashError } from './crash.ts';
import { largestBacklog } from './frame-reader.ts';
import type { Command } from './keeper.ts';
import { PrintedLines } from './printed-lines.ts';
import {
  cancelMessage,
  creditMessage,
  decode,
  drainMessage,
  type Header,
  type InitMessage,
  initMessage,
  ProtocolError,
  runHeader,
} from './protocol.ts';
import { ReplicaProcess } from './replica-process.ts';
import { after, type ReplicaEvent, type ReplicaState, takesRuns } from './replica-states.ts';
import { RunInFlight } from './run-in-flight.ts';
import type { CancelReason, RunListener, RunningRun, RunRequest } from './runtime.ts';

/** Lines of stderr that are kept to explain a crash. */
const STDERR_LINES = 40;

/** The app of a replica, and its time limits in milliseconds. */
export interface ReplicaOptions {
  readonly init: InitMessage;
  readonly env: Readonly<Record<string, string>>;
  readonly startupTimeoutMs: number;
  readonly timeoutMs: number;
  readonly cancelGraceMs: number;
  /** The time limit of a drained process from the end of its last run to its exit. */
  readonly teardownMs: number;
}

/** A pool's view of one replica of an app, whatever its protocol. */
export interface AnyReplica {
  readonly state: ReplicaState;
  /** Whether the system confines the replica's signals, and its access to other processes, to the replica. */
  readonly contained: boolean;
  /** Whether a run has ended normally here, so that the process is known to work. */
  readonly proved: boolean;
  /** Undefined if the process could not be started, or is not started by the worker. */
  readonly pid: number | undefined;
  readonly freeSlots: number;
  /** Starts a run. The replica must have a free slot. */
  run(request: RunRequest, listener: RunListener): RunningRun;
  /** Takes no further runs. The replica ends after its last run. */
  drain(): void;
  /** Ends the replica, and every process that it started, immediately. */
  kill(): void;
}

export interface ReplicaListener {
  /** The state of the replica has changed. `from` is undefined for the first state, `spawning`. */
  moved(from: ReplicaState | undefined, to: ReplicaState): void;
  /** The app is imported and set up. */
  ready(functions: readonly FunctionSpec[]): void;
  /** The app did not start. `exited` follows. */
  failed(error: ErrorFields): void;
  /** A run has ended. Its slot is free if the replica still takes runs. */
  freed(): void;
  /** The replica takes no further runs, and ends after its open runs. @param why the reason, as text for the log */
  retiring(why: string): void;
  /** Lines of no run, or of a run that has ended. */
  log(lines: PrintedLines, runId: RunId | undefined): void;
  /** The process and its runs have ended. */
  exited(how: ReplicaExit): void;
}

/** Why a worker ended a ready process before its time. */
export type KilledFor = 'channel' | 'unhealthy';

export interface ReplicaExit extends Omit<ProcessEnd, 'killed'> {
  /** Set if the worker ended the process. */
  readonly killed: KilledFor | undefined;
  /** The last lines that the process printed to stderr. */
  readonly stderr: readonly string[];
}

const notStartedBecause = (message: string): ErrorFields => ({ code: 'app_failed_to_start', message });

const endedByWorker: ErrorFields = {
  code: 'replica_crashed',
  message: "the function's process was ended by its worker",
};

export class Replica implements AnyReplica {
  state: ReplicaState = 'spawning';
  contained = false;
  proved = false;
  readonly #options: ReplicaOptions;
  readonly #listener: ReplicaListener;
  readonly #process: ReplicaProcess;
  readonly #runs = new Map<RunId, RunInFlight>();
  readonly #stderr: string[] = [];
  /** Ends of runs that wait until their last output is read from the raw pipes. */
  readonly #settling = new Set<() => void>();
  /** Runs reported as cancelled whose threads are still busy. */
  #stuck = 0;
  #startTimer: NodeJS.Timeout | undefined;
  #teardownTimer: NodeJS.Timeout | undefined;

  constructor(command: Command, options: ReplicaOptions, listener: ReplicaListener) {
    this.#options = options;
    this.#listener = listener;
    listener.moved(undefined, this.state);
    this.#startTimer = setTimeout(() => this.#startTimedOut(), options.startupTimeoutMs);
    this.#process = new ReplicaProcess(command, options.init, options.env, {
      frame: (header, blob) => this.#receive(header, blob),
      lines: (stream, texts) => this.#lines(stream, texts),
      unstartable: (why) =>
        this.#fail({ ...notStartedBecause(`the interpreter cannot be started: ${why}`), type: 'NotStarted' }),
      kept: (contained) => {
        this.contained = contained;
      },
      exited: (how) => this.#exited(how),
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get freeSlots(): number {
    if (!takesRuns(this.state) || !this.#process.open) return 0;
    return Math.max(0, this.#options.init.concurrency - this.#runs.size - this.#stuck);
  }

  run(request: RunRequest, listener: RunListener): RunningRun {
    // Nothing here keeps `request`, because its parameters may have megabytes and the run may last for hours.
    const { runId } = request;
    const run = new RunInFlight(runId, listener);
    this.#runs.set(runId, run);
    this.#process.send(runHeader(request), request.params);
    run.after(this.#options.timeoutMs, () => this.#cancel(run, 'timed_out'));
    return {
      cancel: (reason) => this.#cancel(run, reason),
      credit: (upTo) => {
        if (run.ended) return;
        run.credits.took(upTo);
        this.#process.send(creditMessage(runId, upTo));
      },
      // A run without credit stops. The worker always reads from the process, because other runs need their answers and cancels.
      pause: () => {},
      resume: () => {},
    };
  }

  /** Takes no further runs. The process tears down and ends after its last run. */
  drain(): void {
    const before = this.state;
    this.#move('drain');
    if (this.state === 'failed') this.kill();
    else if (this.state !== before) {
      this.#process.send(drainMessage());
      this.#endWhenIdle();
    }
  }

  kill(): void {
    this.#process.kill();
  }

  /** Assigns lines from outside the interpreter to the open run, if there is exactly one. */
  #lines(stream: 'stdout' | 'stderr', texts: readonly string[]): void {
    if (stream === 'stderr') {
      this.#stderr.push(...texts.slice(-STDERR_LINES));
      this.#stderr.splice(0, this.#stderr.length - STDERR_LINES);
    }
    const run = this.#runs.size === 1 ? this.#runs.values().next().value : undefined;
    const lines = PrintedLines.now(stream, texts);
    if (run) run.log(lines);
    else this.#listener.log(lines, undefined);
  }

  #receive(header: Header, blob: Buffer): void {
    const message = decode(header);
    switch (message.t) {
      case 'items': {
        const run = this.#runs.get(message.r);
        if (!run) return;
        run.credits.gave(message.n, blob.length);
        if (run.credits.bytes > largestBacklog(this.#options.init))
          throw new ProtocolError('a run has sent more items than its credit allows');
        run.items({ kind: message.k, count: message.n, blob });
        return;
      }
      case 'done':
      case 'error':
      case 'cancelled':
        this.#terminal(message.r, (run) => run.terminal(message, blob, this.#options.init.debug));
        return;
      case 'started':
        this.#runs.get(message.r)?.started();
        return;
      case 'log': {
        // Copies the lines, because the chunk that contains them may be large and the lines may be kept for long.
        const lines = new PrintedLines(Buffer.from(blob), message.n, message.cut);
        const run = message.r === undefined ? undefined : this.#runs.get(message.r);
        if (run) run.log(lines);
        else this.#listener.log(lines, message.r);
        return;
      }
      case 'hello':
        this.#move('hello');
        this.#process.send(initMessage(this.#options.init));
        return;
      case 'ready':
        clearTimeout(this.#startTimer);
        this.#move('ready');
        this.#listener.ready(message.functions);
        return;
      case 'init_error':
        this.#fail({
          code: 'app_failed_to_start',
          message: `${message.stage === 'load' ? 'import' : 'setup()'} failed: ${message.type}: ${message.message}`,
          type: message.type,
          ...(this.#options.init.debug && { traceback: message.traceback }),
        });
        return;
      case 'worn':
        this.#retire(message.why);
        return;
      case 'bye':
        return;
    }
  }

  #terminal(runId: RunId, end: (run: RunInFlight) => void): void {
    const run = this.#runs.get(runId);
    if (!run) {
      if (this.#stuck > 0) this.#stuck--; // a run that was given up has ended: its thread is free again
      return;
    }
    this.proved = true;
    const settle = (): void => {
      this.#settling.delete(settle);
      if (!this.#runs.delete(runId)) {
        if (this.#stuck > 0) this.#stuck--; // the run was given up in the meantime
        return;
      }
      end(run);
      this.#afterRun();
    };
    // The output of C code and child processes is in the raw pipes by now. The next round of the event loop reads it at the latest.
    if (this.#runs.size === 1 && run.hasOutput) {
      this.#settling.add(settle);
      setImmediate(() => setImmediate(settle));
    } else {
      settle();
    }
  }

  #afterRun(): void {
    this.#endWhenIdle();
    this.#listener.freed();
  }

  /** Sends the cancel. If the run does not end within the grace, the next step depends on whether other runs share the process. */
  #cancel(run: RunInFlight, reason: CancelReason): void {
    if (run.ended || run.reason !== undefined) return;
    run.reason = reason;
    this.#process.send(cancelMessage(run.runId));
    run.after(this.#options.cancelGraceMs, () => {
      if (this.#options.init.concurrency > 1) this.#giveUp(run, reason);
      else {
        // The harness ignores SIGTERM, so only SIGKILL ends the function.
        this.#retire('a cancelled function does not end');
        this.kill();
      }
    });
  }

  /** Ends a run whose function does not stop. The process takes no further runs and ends after its other runs, which continue. */
  #giveUp(run: RunInFlight, reason: CancelReason): void {
    this.#runs.delete(run.runId);
    this.#stuck++;
    this.#retire('a cancelled function does not end');
    run.giveUp(reason);
    this.#afterRun();
  }

  #retire(why: string): void {
    const before = this.state;
    this.#move('stuck');
    if (this.state !== before) this.#listener.retiring(why);
  }

  #endWhenIdle(): void {
    if (this.#runs.size > 0) return;
    if (this.state === 'retiring') this.kill();
    if (this.state === 'draining') {
      if (this.#stuck > 0) this.kill();
      else this.#teardownTimer ??= setTimeout(() => this.#teardownTimedOut(), this.#options.teardownMs);
    }
  }

  #teardownTimedOut(): void {
    const text = `the process did not end within ${this.#options.teardownMs / 1_000} s after teardown() began: the worker kills the process`;
    this.#listener.log(PrintedLines.now('stderr', [text]), undefined);
    this.kill();
  }

  #startTimedOut(): void {
    this.#fail(notStartedBecause(`the app was not ready within ${this.#options.startupTimeoutMs / 1_000} s`));
  }

  #fail(error: ErrorFields): void {
    clearTimeout(this.#startTimer);
    this.#move('failed');
    this.#listener.failed(error);
    this.kill();
  }

  #exited(how: ProcessEnd): void {
    clearTimeout(this.#startTimer);
    clearTimeout(this.#teardownTimer);
    const crash = how.killed && how.signal === 'SIGKILL' ? endedByWorker : crashError(how);
    const unready = this.state === 'spawning' || this.state === 'loading';
    this.#move('exit');
    // Also if the worker killed the process: an app that closes or writes to foreign descriptors never becomes ready.
    if (unready) this.#listener.failed(notStartedBecause(`while starting, ${crash.message}`));
    for (const settle of this.#settling) settle();
    for (const run of this.#runs.values()) run.crashed(crash);
    this.#runs.clear();
    this.#listener.exited({ ...how, killed: how.killed ? 'channel' : undefined, stderr: this.#stderr });
  }

  #move(event: ReplicaEvent): void {
    const before = this.state;
    this.state = after(before, event);
    if (this.state !== before) this.#listener.moved(before, this.state);
  }
}
