// Contract 1, "Custom runtimes": one web server of an app: its process (if the worker starts it), its checks, and its runs as requests.
import type { ErrorFields, RunId } from '@inference-proxy/contracts';
import { AppProcess, type ProcessEnd } from '../app-process.ts';
import { crashError } from '../crash.ts';
import { Credits } from '../credits.ts';
import type { Command } from '../keeper.ts';
import { PrintedLines } from '../printed-lines.ts';
import type { AnyReplica, KilledFor, ReplicaListener } from '../replica.ts';
import { after, type ReplicaEvent, type ReplicaState, takesRuns } from '../replica-states.ts';
import { RunInFlight } from '../run-in-flight.ts';
import type { CancelReason, RunListener, RunningRun, RunRequest } from '../runtime.ts';
import type { ServerAddress } from './address.ts';
import type { BodyLimits } from './body-reader.ts';
import { isDying } from './dying.ts';
import { ServerRequest, type ServerRequestEnd } from './server-request.ts';
import { ServerWatch, type WatchTimes } from './server-watch.ts';

/** The time for a stopped server to finish its open requests and its own clean-up. */
const TEARDOWN_MS = 30_000;
/** The time for a dead process to report its exit after its connection broke, and the time for a process that is seen to be dying. */
const EXIT_MS = 500;
const DYING_MS = 10_000;
/** Lines of stderr that are kept to explain a crash. */
const STDERR_LINES = 40;

/** The limits and checks of a server. Times in milliseconds. */
export interface ServerOptions extends BodyLimits {
  readonly concurrency: number;
  readonly startupTimeoutMs: number;
  readonly timeoutMs: number;
  readonly healthcheck: string;
  readonly readycheck: string;
  readonly killOnCancel: boolean;
  readonly watch: WatchTimes;
}

/** A server to start. */
export interface ServerProgram {
  readonly command: Command;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** @param keeper process id of the server's keeper, if the worker started the server */
export type FindServer = (keeper: number | undefined) => Promise<ServerAddress | string>;

interface ServedRun {
  readonly run: RunInFlight;
  readonly sent: ServerRequest;
}

const notStarted = (type: string, message: string): ErrorFields => ({ code: 'app_failed_to_start', type, message });

export class ServerReplica implements AnyReplica {
  state: ReplicaState = 'spawning';
  contained = false;
  proved = false;
  readonly #options: ServerOptions;
  readonly #listener: ReplicaListener;
  readonly #process: AppProcess | undefined;
  readonly #watch: ServerWatch;
  readonly #runs = new Map<RunId, ServedRun>();
  readonly #stderr: string[] = [];
  /** Complete answers that wait for the server's output during their runs. */
  readonly #settling = new Map<RunId, () => void>();
  #address: ServerAddress | undefined;
  /** Whether the last readiness check succeeded. */
  #isReady = false;
  #killedFor: KilledFor | undefined;
  #gone = false;
  #endTimer: NodeJS.Timeout | undefined;

  /**
   * @param program the program to start. Undefined for a server that runs elsewhere.
   * @param find returns the address, or a text with the reason why the address is unknown
   */
  constructor(program: ServerProgram | undefined, find: FindServer, options: ServerOptions, listener: ReplicaListener) {
    this.#options = options;
    this.#listener = listener;
    listener.moved(undefined, this.state);
    this.#endTimer = setTimeout(() => this.#startTimedOut(), options.startupTimeoutMs);
    this.#process = program && this.#spawn(program);
    this.#move('hello');
    this.#watch = new ServerWatch(
      options.watch,
      { health: options.healthcheck, ready: options.readycheck },
      async () => {
        if (this.#address) return this.#address;
        const found = await find(this.pid);
        if (typeof found !== 'string') this.#address = found;
        return found;
      },
      {
        ready: (isReady) => this.#turned(isReady),
        unwell: (why) => this.#unwell(why),
        busy: () => this.#runs.size > 0,
      },
    );
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get freeSlots(): number {
    return takesRuns(this.state) && this.#isReady ? Math.max(0, this.#options.concurrency - this.#runs.size) : 0;
  }

  run(request: RunRequest, listener: RunListener): RunningRun {
    const run = new RunInFlight(request.runId, listener);
    const credits = request.paced ? new Credits() : undefined;
    /** Whether the store is slow. */
    let held = false;
    const pace = (): void => {
      if (held || credits?.spent) sent.pause();
      else sent.resume();
    };
    const sent = new ServerRequest(request, this.#address as ServerAddress, this.#options, {
      head: (head) => run.head(head),
      items: (frame) => {
        run.items(frame);
        credits?.gave(frame.count, frame.blob.length);
        if (credits?.spent) sent.pause();
      },
      ended: (end) => this.#answered({ run, sent }, end),
    });
    this.#runs.set(request.runId, { run, sent });
    run.after(this.#options.timeoutMs, () => this.#cancel({ run, sent }, 'timed_out'));
    sent.start();
    return {
      cancel: (reason) => this.#cancel({ run, sent }, reason),
      credit: (upTo) => {
        credits?.took(upTo);
        pace();
      },
      pause: () => {
        held = true;
        pace();
      },
      resume: () => {
        held = false;
        pace();
      },
    };
  }

  drain(): void {
    const before = this.state;
    this.#move('drain');
    if (this.state === 'failed') this.kill();
    else if (this.state !== before) {
      this.#watch.stop();
      this.#endWhenIdle();
    }
  }

  kill(): void {
    this.#watch.stop();
    if (this.#process) this.#process.kill();
    else this.#leave();
  }

  #spawn({ command, folder, env }: ServerProgram): AppProcess {
    return new AppProcess(command, folder, env, {
      lines: (stream, texts) => this.#lines(stream, texts),
      unstartable: (why) => this.#fail(notStarted('NotStarted', `the server cannot be started: ${why}`)),
      kept: (contained) => {
        this.contained = contained;
      },
      exited: (how) => this.#exited(how),
    });
  }

  /** Assigns lines that the server prints to the open run, if there is exactly one. */
  #lines(stream: 'stdout' | 'stderr', texts: readonly string[]): void {
    if (stream === 'stderr') {
      this.#stderr.push(...texts.slice(-STDERR_LINES));
      this.#stderr.splice(0, this.#stderr.length - STDERR_LINES);
    }
    const only = this.#runs.size === 1 ? this.#runs.values().next().value : undefined;
    const lines = PrintedLines.now(stream, texts);
    if (only) only.run.log(lines);
    else this.#listener.log(lines, undefined);
  }

  #turned(isReady: boolean): void {
    this.#isReady = isReady;
    if (this.state === 'loading') {
      clearTimeout(this.#endTimer);
      this.#endTimer = undefined;
      this.#move('ready');
      this.#listener.ready([]);
    } else if (isReady) {
      this.#listener.freed();
    }
  }

  #answered(served: ServedRun, end: ServerRequestEnd): void {
    const { run } = served;
    if (end.ok) {
      this.proved = true;
      // The output of this run is in the pipes by now. The next round of the event loop reads it at the latest.
      const settle = (): void => {
        this.#settling.delete(run.runId);
        this.#end(served, () => run.answered(end.head, end.body));
      };
      this.#settling.set(run.runId, settle);
      if (this.#runs.size === 1 && this.#process) setImmediate(() => setImmediate(settle));
      else settle();
    } else if (end.broke && this.#process && !this.#gone) {
      // A process that died reports its exit. The exit is then the cause of the failure.
      const wait = isDying(this.#process.pid) ? DYING_MS : EXIT_MS;
      run.after(wait, () => this.#end(served, () => run.crashed(end.error)));
    } else {
      this.#end(served, () => run.crashed(end.error));
    }
  }

  #end({ run, sent }: ServedRun, end: () => void): void {
    if (!this.#runs.delete(run.runId)) return; // the run has ended in the meantime
    sent.abort();
    end();
    this.#endWhenIdle();
    this.#listener.freed();
  }

  /** Closes the connection, the only signal that reaches a server. With `kill_on_cancel`, also ends the server after its other runs. */
  #cancel(served: ServedRun, reason: CancelReason): void {
    const { run } = served;
    if (run.ended || run.reason !== undefined || this.#settling.has(run.runId)) return;
    run.reason = reason;
    if (this.#options.killOnCancel) this.#retire('a run was cancelled, and its manifest asks for it (kill_on_cancel)');
    this.#end(served, () => run.giveUp(reason));
  }

  #unwell(why: string): void {
    this.#isReady = false;
    this.#lines('stderr', [`health check failed: ${why}`]);
    if (this.#process) {
      this.#killedFor = 'unhealthy';
      this.#process.kill();
    } else {
      // Open runs may still end normally. A new replica starts to check the server in the meantime.
      this.#retire('its health checks failed');
      this.#endWhenIdle();
    }
  }

  #retire(why: string): void {
    const before = this.state;
    this.#move('stuck');
    if (this.state !== before) this.#listener.retiring(why);
  }

  #endWhenIdle(): void {
    if (this.#runs.size > 0 || (this.state !== 'retiring' && this.state !== 'draining')) return;
    this.#watch.stop();
    if (this.#process) {
      this.#process.terminate();
      this.#endTimer ??= setTimeout(() => this.kill(), TEARDOWN_MS);
    } else {
      this.#leave();
    }
  }

  #startTimedOut(): void {
    const { startupTimeoutMs } = this.#options;
    const waited = `the server was not ready within ${startupTimeoutMs / 1_000} s: ${this.#watch.why}`;
    this.#fail(notStarted('NotReady', waited));
  }

  #fail(error: ErrorFields): void {
    clearTimeout(this.#endTimer);
    this.#endTimer = undefined;
    this.#move('failed');
    this.#listener.failed(error);
    this.kill();
  }

  /** Leaves a server that runs elsewhere. Reports the exit later, as for a process. */
  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    const how = { code: null, signal: null, overMemory: undefined };
    setImmediate(() => this.#over({ code: 'unavailable', message: 'the worker left the server' }, how));
  }

  #exited(how: ProcessEnd): void {
    this.#gone = true;
    const ended = { code: 'replica_crashed', message: "the server's process was ended by its worker" } as const;
    const crash = how.killed && how.signal === 'SIGKILL' ? ended : crashError(how, 'the server');
    const unready = this.state === 'spawning' || this.state === 'loading';
    if (unready) {
      const last = this.#stderr.findLast((line) => line.trim() !== '');
      const said = last === undefined ? '' : `: ${last.trim()}`;
      this.#listener.failed(notStarted('Exited', `while starting, ${crash.message}${said}`));
    }
    this.#over(crash, how);
  }

  #over(crash: ErrorFields, { code, signal, overMemory }: Omit<ProcessEnd, 'killed'>): void {
    clearTimeout(this.#endTimer);
    this.#watch.stop();
    this.#move('exit');
    for (const settle of this.#settling.values()) settle();
    for (const { run, sent } of this.#runs.values()) {
      sent.abort();
      run.crashed(crash);
    }
    this.#runs.clear();
    this.#address?.agent.destroy();
    this.#listener.exited({ code, signal, overMemory, killed: this.#killedFor, stderr: this.#stderr });
  }

  #move(event: ReplicaEvent): void {
    const before = this.state;
    this.state = after(before, event);
    if (this.state !== before) this.#listener.moved(before, this.state);
  }
}
