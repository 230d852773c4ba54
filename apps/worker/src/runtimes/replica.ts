// runtimes: one process of an app and the runs it has. Ended by `exit` and a short drain, never by `close`, which waits for grandchildren.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import type { ErrorFields, FunctionSpec, RunId } from '@inference-proxy/contracts';
import { crashError } from './crash.ts';
import { FrameReader } from './frame-reader.ts';
import { LogLines } from './log-lines.ts';
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
import { after, type ReplicaEvent, type ReplicaState, takesRuns } from './replica-states.ts';
import { RunInFlight } from './run-in-flight.ts';
import type { CancelReason, LogLine, RunListener, RunningRun, RunRequest } from './runtime.ts';

/** How long after `exit` the pipes are read for what the process said last; a daemon that holds them open is not waited for. */
const EXIT_DRAIN_MS = 200;
/** How long a process that was asked to end by a signal may take. */
const TERM_GRACE_MS = 2_000;
/** A process that has ended its last run may take this long for teardown(). */
const TEARDOWN_MS = 30_000;
/** Lines of stderr kept to explain a crash. */
const STDERR_LINES = 40;

/** What is started, and how long it may take. Times in milliseconds. */
export interface ReplicaOptions {
  readonly init: InitMessage;
  readonly env: Readonly<Record<string, string>>;
  readonly startupTimeoutMs: number;
  readonly timeoutMs: number;
  readonly cancelGraceMs: number;
}

/** A program and its arguments. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

export interface ReplicaListener {
  /** The app is imported and set up. */
  ready(functions: readonly FunctionSpec[]): void;
  /** The app did not start; `exited` follows. */
  failed(error: ErrorFields): void;
  /** A run has ended: its slot is free, where the replica still takes runs. */
  freed(): void;
  /** A cancelled function does not end: the replica takes no more runs, and ends after those it has. */
  retiring(): void;
  /** A line of no run that is known. */
  log(line: LogLine): void;
  /** The process is gone, and all its runs are ended. */
  exited(how: { code: number | null; signal: NodeJS.Signals | null; stderr: readonly string[] }): void;
}

export class Replica {
  state: ReplicaState = 'spawning';
  /** Whether a run has come to its own end here: the process works. */
  proved = false;
  readonly #options: ReplicaOptions;
  readonly #listener: ReplicaListener;
  readonly #child: ChildProcess;
  readonly #channel: Duplex | undefined;
  readonly #runs = new Map<RunId, RunInFlight>();
  /** Runs whose store is behind: while there are any, the process is not read from, which stops it when its pipe is full. */
  readonly #pausing = new Set<RunInFlight>();
  readonly #stderr: string[] = [];
  readonly #gone = Promise.withResolvers<void>();
  /** Runs reported as cancelled whose threads are still busy. */
  #stuck = 0;
  #killed = false;
  #endTimer: NodeJS.Timeout | undefined;
  #corked = false;

  constructor(command: Command, options: ReplicaOptions, listener: ReplicaListener) {
    this.#options = options;
    this.#listener = listener;
    this.#endTimer = setTimeout(() => this.#startTimedOut(), options.startupTimeoutMs);
    this.#child = spawn(command.file, command.args, {
      cwd: options.init.app,
      env: options.env,
      // fd 3 is the protocol; the kernel kills the process group when our end of fd 4 closes (harness/PROTOCOL.md).
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child.once('error', (error) => this.#spawnFailed(error));
    this.#child.once('exit', (code, signal) => void this.#exited(code, signal));
    this.#channel = this.#open();
  }

  /** Resolves when the process is gone. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get busy(): number {
    return this.#runs.size;
  }

  get freeSlots(): number {
    return takesRuns(this.state) ? Math.max(0, this.#options.init.concurrency - this.#runs.size - this.#stuck) : 0;
  }

  /** Starts a run; only with a free slot. */
  run(request: RunRequest, listener: RunListener): RunningRun {
    const run = new RunInFlight(request, listener);
    this.#runs.set(request.runId, run);
    this.#send(runHeader(request), request.params);
    run.after(this.#options.timeoutMs, () => this.#cancel(run, 'timed_out'));
    return {
      cancel: (reason) => this.#cancel(run, reason),
      credit: (upTo) => {
        if (!run.ended) this.#send(creditMessage(request.runId, upTo));
      },
      pause: () => {
        if (run.ended || run.reason !== undefined) return;
        this.#pausing.add(run);
        this.#channel?.pause();
      },
      resume: () => this.#resume(run),
    };
  }

  /** No more runs; the process tears down and ends after its last. */
  drain(): void {
    const before = this.state;
    this.#move('drain');
    if (this.state === 'failed') this.kill();
    else if (this.state !== before) {
      this.#send(drainMessage());
      this.#endWhenIdle();
    }
  }

  /** Ends the process and what it started, at once. */
  kill(): void {
    this.#killed = true;
    this.#signal('SIGKILL');
  }

  #open(): Duplex | undefined {
    const { stdout, stderr, stdio } = this.#child;
    if (stdout) this.#readLines(stdout, 'stdout');
    if (stderr) this.#readLines(stderr, 'stderr');
    // Node's types know the extra descriptors only as either direction; 'pipe' gives a socket.
    const [channel, lifeline] = [stdio[3], stdio[4]] as (Duplex | null | undefined)[];
    lifeline?.on('error', () => {});
    const reader = new FrameReader((header, blob) => this.#receive(header, blob));
    channel?.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.#broken(error.message);
      }
    });
    channel?.on('error', () => {}); // 'exit' tells
    channel?.on('close', () => this.#outlived());
    return channel ?? undefined;
  }

  /** Without its channel a process is of no use, should it still live: mostly its `exit` is just on the way. */
  #outlived(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    clearTimeout(this.#endTimer);
    this.#endTimer = setTimeout(() => this.kill(), EXIT_DRAIN_MS);
  }

  #readLines(pipe: Readable, stream: 'stdout' | 'stderr'): void {
    const lines = new LogLines((text) => this.#line(stream, text));
    pipe.on('data', (chunk: Buffer) => lines.push(chunk));
    pipe.on('error', () => {});
    pipe.on('close', () => lines.end());
  }

  /** A line from outside the interpreter: the only run's, where there is one. */
  #line(stream: 'stdout' | 'stderr', text: string): void {
    if (stream === 'stderr') {
      this.#stderr.push(text);
      if (this.#stderr.length > STDERR_LINES) this.#stderr.shift();
    }
    const run = this.#runs.size === 1 ? this.#runs.values().next().value : undefined;
    const line = { stream, text, at: Date.now() };
    if (run) run.log({ ...line, runId: run.request.runId });
    else this.#listener.log(line);
  }

  #receive(header: Header, blob: Buffer): void {
    const message = decode(header);
    switch (message.t) {
      case 'items':
        this.#runs.get(message.r)?.items({ kind: message.k, count: message.n, blob });
        return;
      case 'done':
      case 'error':
      case 'cancelled':
        this.#terminal(message.r, (run) => run.terminal(message, blob, this.#options.init.debug));
        return;
      case 'started':
        this.#runs.get(message.r)?.started();
        return;
      case 'log': {
        const line = { stream: message.s, text: message.m, at: message.at };
        const run = message.r === undefined ? undefined : this.#runs.get(message.r);
        if (run) run.log({ ...line, runId: run.request.runId });
        else this.#listener.log(message.r === undefined ? line : { ...line, runId: message.r });
        return;
      }
      case 'hello':
        this.#move('hello');
        this.#send(initMessage(this.#options.init));
        return;
      case 'ready':
        clearTimeout(this.#endTimer);
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
      case 'bye':
        return;
    }
  }

  #terminal(runId: RunId, end: (run: RunInFlight) => void): void {
    const run = this.#runs.get(runId);
    if (!run) {
      if (this.#stuck > 0) this.#stuck--; // one that had been reported already: its thread is free again
      return;
    }
    this.#runs.delete(runId);
    this.#resume(run);
    this.proved = true;
    end(run);
    this.#afterRun();
  }

  #afterRun(): void {
    this.#endWhenIdle();
    this.#listener.freed();
  }

  /** The ladder's first step; what follows depends on whether other runs share the process. */
  #cancel(run: RunInFlight, reason: CancelReason): void {
    if (run.ended || run.reason !== undefined) return;
    run.reason = reason;
    this.#resume(run);
    this.#send(cancelMessage(run.request.runId));
    run.after(this.#options.cancelGraceMs, () => {
      if (this.#options.init.concurrency === 1) this.#end();
      else this.#giveUp(run, reason);
    });
  }

  /** The function does not stop: its run ends without it, and the process with its other runs, none of which is harmed. */
  #giveUp(run: RunInFlight, reason: CancelReason): void {
    this.#runs.delete(run.request.runId);
    this.#stuck++;
    this.#retire();
    run.giveUp(reason);
    this.#afterRun();
  }

  #end(): void {
    this.#retire();
    this.#signal('SIGTERM');
    this.#endTimer = setTimeout(() => this.kill(), TERM_GRACE_MS);
  }

  #retire(): void {
    const before = this.state;
    this.#move('stuck');
    if (this.state !== before) this.#listener.retiring();
  }

  #endWhenIdle(): void {
    if (this.#runs.size > 0) return;
    if (this.state === 'retiring') this.kill();
    if (this.state === 'draining') {
      if (this.#stuck > 0) this.kill();
      else this.#endTimer ??= setTimeout(() => this.kill(), TEARDOWN_MS);
    }
  }

  #resume(run: RunInFlight): void {
    if (this.#pausing.delete(run) && this.#pausing.size === 0) this.#channel?.resume();
  }

  #startTimedOut(): void {
    const seconds = this.#options.startupTimeoutMs / 1_000;
    this.#fail({ code: 'app_failed_to_start', message: `the app was not ready within ${seconds} s` });
  }

  #spawnFailed(error: Error): void {
    if (this.#child.pid !== undefined) return; // a signal could not be sent
    this.#fail({ code: 'app_failed_to_start', message: `the interpreter cannot be started: ${error.message}` });
    void this.#exited(null, null);
  }

  /** The process does not speak the protocol: whatever it says further is not heard. */
  #broken(message: string): void {
    this.#channel?.destroy();
    this.#listener.log({ stream: 'stderr', text: `harness protocol broken: ${message}`, at: Date.now() });
    this.kill();
  }

  #fail(error: ErrorFields): void {
    this.#move('failed');
    this.#listener.failed(error);
    this.kill();
  }

  async #exited(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    clearTimeout(this.#endTimer);
    this.#signal('SIGKILL'); // what the function started and left
    this.#pausing.clear();
    this.#channel?.resume();
    await this.#drained();
    for (const stream of this.#child.stdio) stream?.destroy();
    const unready = this.state === 'spawning' || this.state === 'loading';
    const killed = this.#killed;
    this.#move('exit');
    if (unready && !killed) {
      const { message } = crashError(code, signal);
      this.#listener.failed({ code: 'app_failed_to_start', message: `while starting, ${message}` });
    }
    const error: ErrorFields =
      killed && signal === 'SIGKILL'
        ? { code: 'replica_crashed', message: "the function's process was ended by its worker" }
        : crashError(code, signal);
    for (const run of this.#runs.values()) run.crashed(error);
    this.#runs.clear();
    this.#listener.exited({ code, signal, stderr: this.#stderr });
    this.#gone.resolve();
  }

  async #drained(): Promise<void> {
    const open = this.#child.stdio.slice(1, 4).filter((stream) => stream && !stream.closed);
    const closed = Promise.all(open.map((stream) => new Promise((resolve) => stream?.once('close', resolve))));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, EXIT_DRAIN_MS);
    });
    await Promise.race([closed, late]);
    clearTimeout(timer);
  }

  /** All that one tick has to say goes in one write. */
  #send(...parts: Buffer[]): void {
    const channel = this.#channel;
    if (!channel?.writable) return; // it is ending, and its runs with it
    if (!this.#corked) {
      this.#corked = true;
      channel.cork();
      process.nextTick(() => {
        this.#corked = false;
        channel.uncork();
      });
    }
    for (const part of parts) channel.write(part);
  }

  /** To the whole process group, so that what the function started goes too. */
  #signal(signal: NodeJS.Signals): void {
    if (this.pid === undefined) return;
    try {
      process.kill(-this.pid, signal);
    } catch {
      // nobody is left in the group
    }
  }

  #move(event: ReplicaEvent): void {
    this.state = after(this.state, event);
  }
}
