// Contract 8: one replica of an app's functions, over the channel of harness/PROTOCOL.md, and the steps that end a cancelled run.
import type { ErrorFields, RunId } from '@inference-proxy/contracts';
import { largestBacklog } from './frame-reader.ts';
import { withBoundedSchemas } from './function-schemas.ts';
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
import type { Replica, ReplicaListener } from './replica.ts';
import { ReplicaLife } from './replica-life.ts';
import { ReplicaProcess } from './replica-process.ts';
import type { ReplicaState } from './replica-states.ts';
import { RunInFlight } from './run-in-flight.ts';
import type { CancelReason, RunListener, RunningRun, RunRequest } from './runtime.ts';

/** The app of a replica, and its time limits in milliseconds. */
export interface FunctionReplicaOptions {
  readonly init: InitMessage;
  readonly env: Readonly<Record<string, string>>;
  readonly startupTimeoutMs: number;
  readonly timeoutMs: number;
  readonly cancelGraceMs: number;
  /** The time limit of a drained process from the end of its last run to its exit. */
  readonly teardownMs: number;
}

const STUCK = 'a cancelled function does not end';

const notStartedBecause = (message: string): ErrorFields => ({ code: 'app_failed_to_start', message });

export class FunctionReplica implements Replica {
  readonly #options: FunctionReplicaOptions;
  readonly #listener: ReplicaListener;
  readonly #life: ReplicaLife;
  readonly #process: ReplicaProcess;
  /** Runs reported as cancelled whose threads are still busy. */
  #stuck = 0;
  /** True if all functions share one event loop. The loop confirms each cancel, unless a function blocks the loop. */
  #oneLoop = false;
  /** Cancelled runs whose cancel the loop has not confirmed. */
  readonly #unconfirmed = new Set<RunId>();

  constructor(command: Command, options: FunctionReplicaOptions, listener: ReplicaListener) {
    this.#options = options;
    this.#listener = listener;
    const life = new ReplicaLife(
      {
        whose: 'the function',
        startupTimeoutMs: options.startupTimeoutMs,
        startTimedOut: () => notStartedBecause(`the app was not ready within ${options.startupTimeoutMs / 1_000} s`),
        endedWhileStarting: (crash) => notStartedBecause(`while starting, ${crash}`),
        drain: () => this.#process.send(drainMessage()),
        end: (state) => this.#end(state),
        kill: () => this.kill(),
      },
      listener,
    );
    this.#life = life;
    this.#process = new ReplicaProcess(command, options.init, options.env, {
      frame: (header, blob) => this.#receive(header, blob),
      lines: (stream, texts) => life.lines(stream, texts),
      unstartable: (why) =>
        life.fail({ ...notStartedBecause(`the interpreter cannot be started: ${why}`), type: 'NotStarted' }),
      kept: (contained) => {
        life.contained = contained;
      },
      exited: (how) => life.exited(how, how.killed ? 'channel' : undefined),
    });
  }

  get state(): ReplicaState {
    return this.#life.state;
  }

  get contained(): boolean {
    return this.#life.contained;
  }

  get proved(): boolean {
    return this.#life.proved;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get freeSlots(): number {
    return this.#process.open ? this.#life.freeSlots(this.#options.init.concurrency - this.#stuck) : 0;
  }

  run(request: RunRequest, listener: RunListener): RunningRun {
    // Nothing here keeps `request`, because its parameters may have megabytes and the run may last for hours.
    const { runId } = request;
    const run = new RunInFlight(runId, listener);
    this.#life.runs.set(runId, run);
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
    this.#life.drain();
  }

  kill(): void {
    this.#process.kill();
  }

  #receive(header: Header, blob: Buffer): void {
    const message = decode(header);
    const { runs } = this.#life;
    switch (message.t) {
      case 'items': {
        const run = runs.get(message.r);
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
      case 'head':
        runs.get(message.r)?.answers(message);
        return;
      case 'started':
        runs.get(message.r)?.started();
        return;
      case 'log': {
        // Copies the lines, because the chunk that contains them may be large and the lines may be kept for long.
        const lines = new PrintedLines(Buffer.from(blob), message.n, message.cut);
        const run = message.r === undefined ? undefined : runs.get(message.r);
        if (run) run.log(lines);
        else this.#listener.log(lines, message.r);
        return;
      }
      case 'hello':
        this.#oneLoop = message.one_loop ?? false;
        this.#life.move('hello');
        this.#process.send(initMessage(this.#options.init));
        return;
      case 'ready':
        this.#life.ready(withBoundedSchemas(message.functions));
        return;
      case 'init_error':
        this.#life.fail({
          code: 'app_failed_to_start',
          message: `${message.stage === 'load' ? 'import' : 'setup()'} failed: ${message.type}: ${message.message}`,
          type: message.type,
          ...(this.#options.init.debug && { traceback: message.traceback }),
        });
        return;
      case 'worn':
        this.#life.retire(message.why);
        return;
      case 'cancelling':
        this.#unconfirmed.delete(message.r);
        return;
      case 'bye':
        return;
    }
  }

  #terminal(runId: RunId, end: (run: RunInFlight) => void): void {
    const run = this.#life.runs.get(runId);
    this.#unconfirmed.delete(runId);
    // The output of C code and child processes is in the raw pipes by now.
    if (run) this.#life.settle(run, run.hasOutput, () => end(run));
    else if (this.#stuck > 0) this.#stuck--; // a run that was given up has ended: its thread is free again
  }

  /** Sends the cancel. If the run does not end within the grace, the next step depends on whether other runs share the process. */
  #cancel(run: RunInFlight, reason: CancelReason): void {
    if (run.ended || run.reason !== undefined) return;
    run.reason = reason;
    this.#process.send(cancelMessage(run.runId));
    if (this.#oneLoop) this.#unconfirmed.add(run.runId);
    run.after(this.#options.cancelGraceMs, () => {
      if (this.#life.isSettling(run)) return;
      const isBlocked = this.#unconfirmed.has(run.runId);
      if (this.#options.init.concurrency > 1 && !isBlocked) this.#giveUp(run, reason);
      else {
        // The harness ignores SIGTERM, so only SIGKILL ends the function. A blocked loop serves no other run either.
        this.#life.retire(STUCK);
        this.kill();
      }
    });
  }

  /** Ends a run whose function does not stop. The process takes no further runs and ends after its other runs, which continue. */
  #giveUp(run: RunInFlight, reason: CancelReason): void {
    this.#life.endRun(run, () => {
      this.#stuck++;
      this.#life.retire(STUCK);
      run.giveUp(reason);
    });
  }

  #end(state: 'retiring' | 'draining'): void {
    if (state === 'retiring' || this.#stuck > 0) this.kill();
    else this.#life.endWithin(this.#options.teardownMs, () => this.#teardownTimedOut());
  }

  #teardownTimedOut(): void {
    const text = `the process did not end within ${this.#options.teardownMs / 1_000} s after teardown() began: the worker kills the process`;
    this.#listener.log(PrintedLines.now('stderr', [text]), undefined);
    this.kill();
  }
}
