// Contract 1, "Custom runtimes": one web server of an app: its process (if the worker starts it), its checks, and its runs as requests.
import type { ErrorFields } from '@inference-proxy/contracts';
import { AppProcess, type ProcessEnd } from '../app-process.ts';
import { Credits } from '../credits.ts';
import type { Command } from '../keeper.ts';
import type { KilledFor, Replica, ReplicaListener } from '../replica.ts';
import { ReplicaLife } from '../replica-life.ts';
import type { ReplicaState } from '../replica-states.ts';
import { RunInFlight } from '../run-in-flight.ts';
import type { CancelReason, RunListener, RunningRun, RunRequest } from '../runtime.ts';
import type { ServerAddress } from './address.ts';
import type { AnswerLimits } from './body-reader.ts';
import { isDying } from './dying.ts';
import { ServerRequest, type ServerRequestEnd } from './server-request.ts';
import { ServerWatch, type WatchTimes } from './server-watch.ts';

/** The time for a stopped server to finish its open requests and its own clean-up. */
const TEARDOWN_MS = 30_000;
/** The time for a dead process to report its exit after its connection broke, and the time for a process that is seen to be dying. */
const EXIT_MS = 500;
const DYING_MS = 10_000;

/** The limits and checks of a server. Times in milliseconds. */
export interface ServerOptions extends AnswerLimits {
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

const notStarted = (type: string, message: string): ErrorFields => ({ code: 'app_failed_to_start', type, message });

export class ServerReplica implements Replica {
  readonly #options: ServerOptions;
  readonly #listener: ReplicaListener;
  readonly #life: ReplicaLife;
  readonly #process: AppProcess | undefined;
  readonly #watch: ServerWatch;
  #address: ServerAddress | undefined;
  /** Whether the last readiness check succeeded. */
  #isReady = false;
  #killedFor: KilledFor | undefined;
  #gone = false;

  /**
   * @param program the program to start. Undefined for a server that runs elsewhere.
   * @param find returns the address, or a text with the reason why the address is unknown
   */
  constructor(program: ServerProgram | undefined, find: FindServer, options: ServerOptions, listener: ReplicaListener) {
    this.#options = options;
    this.#listener = listener;
    this.#life = new ReplicaLife(
      {
        whose: 'the server',
        startupTimeoutMs: options.startupTimeoutMs,
        startTimedOut: () => this.#notReady(),
        endedWhileStarting: (crash, lastLine) =>
          notStarted('Exited', `while starting, ${crash}${lastLine === undefined ? '' : `: ${lastLine}`}`),
        drain: () => this.#watch.stop(),
        end: () => this.#end(),
        kill: () => this.kill(),
      },
      listener,
    );
    this.#process = program && this.#spawn(program);
    this.#life.move('hello');
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
        busy: () => this.#life.runs.size > 0,
      },
    );
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
    return this.#process?.pid;
  }

  get freeSlots(): number {
    return this.#isReady ? this.#life.freeSlots(this.#options.concurrency) : 0;
  }

  run(request: RunRequest, listener: RunListener): RunningRun {
    const run = new RunInFlight(request.runId, listener);
    const credits = request.paced ? new Credits() : undefined;
    let isStoreSlow = false;
    const pace = (): void => {
      if (isStoreSlow || credits?.spent) sent.pause();
      else sent.resume();
    };
    const sent = new ServerRequest(request, this.#address as ServerAddress, this.#options, {
      head: (head) => run.head(head),
      items: (frame) => {
        run.items(frame);
        credits?.gave(frame.count, frame.blob.length);
        if (credits?.spent) sent.pause();
      },
      ended: (end) => this.#answered(run, end),
    });
    run.release = () => sent.abort();
    this.#life.runs.set(request.runId, run);
    run.after(this.#options.timeoutMs, () => this.#cancel(run, 'timed_out'));
    sent.start();
    return {
      cancel: (reason) => this.#cancel(run, reason),
      credit: (upTo) => {
        credits?.took(upTo);
        pace();
      },
      pause: () => {
        isStoreSlow = true;
        pace();
      },
      resume: () => {
        isStoreSlow = false;
        pace();
      },
    };
  }

  drain(): void {
    this.#life.drain();
  }

  kill(): void {
    this.#watch.stop();
    if (this.#process) this.#process.kill();
    else this.#leave();
  }

  #spawn({ command, folder, env }: ServerProgram): AppProcess {
    const life = this.#life;
    return new AppProcess(command, folder, env, {
      lines: (stream, texts) => life.lines(stream, texts),
      unstartable: (why) => life.fail(notStarted('NotStarted', `the server cannot be started: ${why}`)),
      kept: (contained) => {
        life.contained = contained;
      },
      exited: (how) => this.#exited(how),
    });
  }

  #turned(isReady: boolean): void {
    this.#isReady = isReady;
    if (this.state === 'loading') this.#life.ready([]);
    else if (isReady) this.#listener.freed();
  }

  #answered(run: RunInFlight, end: ServerRequestEnd): void {
    if (end.ok) {
      // The output of this run is in the pipes by now.
      this.#life.settle(run, this.#process !== undefined, () => run.answered(end.head, end.body));
      return;
    }
    const crash = (): void => this.#life.endRun(run, () => run.crashed(end.error));
    // A process that died reports its exit. The exit is then the cause of the failure.
    if (end.broke && this.#process && !this.#gone) run.after(isDying(this.#process.pid) ? DYING_MS : EXIT_MS, crash);
    else crash();
  }

  /** Closes the connection, the only signal that reaches a server. With `kill_on_cancel`, also ends the server after its other runs. */
  #cancel(run: RunInFlight, reason: CancelReason): void {
    if (run.ended || run.reason !== undefined || this.#life.isSettling(run)) return;
    run.reason = reason;
    if (this.#options.killOnCancel)
      this.#life.retire('a run was cancelled, and its manifest asks for it (kill_on_cancel)');
    this.#life.endRun(run, () => run.giveUp(reason));
  }

  #unwell(why: string): void {
    this.#isReady = false;
    this.#life.lines('stderr', [`health check failed: ${why}`]);
    if (this.#process) {
      this.#killedFor = 'unhealthy';
      this.#process.kill();
    } else {
      // Open runs may still end normally. A new replica starts to check the server in the meantime.
      this.#life.retire('its health checks failed');
      this.#life.endWhenIdle();
    }
  }

  #end(): void {
    this.#watch.stop();
    if (this.#process) {
      this.#process.terminate();
      this.#life.endWithin(TEARDOWN_MS, () => this.kill());
    } else {
      this.#leave();
    }
  }

  #notReady(): ErrorFields {
    const seconds = this.#options.startupTimeoutMs / 1_000;
    return notStarted('NotReady', `the server was not ready within ${seconds} s: ${this.#watch.why}`);
  }

  /** Leaves a server that runs elsewhere. Reports the exit later, as for a process. */
  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    const how = { code: null, signal: null, overMemory: undefined };
    setImmediate(() => {
      this.#watch.stop();
      this.#life.over({ code: 'unavailable', message: 'the worker left the server' }, how);
      this.#address?.agent.destroy();
    });
  }

  #exited(how: ProcessEnd): void {
    this.#gone = true;
    this.#watch.stop();
    this.#life.exited(how, this.#killedFor);
    this.#address?.agent.destroy();
  }
}
