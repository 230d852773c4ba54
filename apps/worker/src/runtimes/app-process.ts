// harness/PROTOCOL.md, "The keeper": one process of an app under its keeper. Starts the process, reads its output, and reports its end.
// The end is `exit` and a short drain of the pipes. `close` would wait for every process that holds a pipe.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import { type Command, type KeeperMessage, keeperMessage, keptEnv } from './keeper.ts';
import { LogLines } from './log-lines.ts';
import { spawnFailure } from './spawn-failure.ts';

/** The time after `exit` in which the pipes are read for the last output. */
const EXIT_DRAIN_MS = 200;

/** Read from each raw pipe in a millisecond. A faster writer waits: reading and dropping its output would slow the other runs. */
const RAW_LINES_PER_MS = 50;
const RAW_BYTES_PER_MS = 8 * 1024;

/** The time in which the keeper ends every process. Only a process that the system itself cannot end (a hanging disk or device) takes longer. */
const KEEPER_GRACE_MS = 5_000;

/** A keeper writes a line or two. Further bytes come from another process and are not read. */
const KEEPER_BYTES = 4 * 1024;

const CHANNEL = 3;
const LIFELINE = 4;

export interface AppProcessListener {
  /** Lines on one of the raw pipes. */
  lines(stream: 'stdout' | 'stderr', texts: readonly string[]): void;
  /** The program cannot be started. `why` is the reason as text. `exited` follows. */
  unstartable(why: string): void;
  /** Whether the system confines the process's signals, and its access to other processes, to the process and its children. */
  kept(contained: boolean): void;
  /** Called once: the process and every process that it started have ended, and the pipes are read. */
  exited(how: ProcessEnd): void;
}

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Whether `kill` ended the process. */
  readonly killed: boolean;
  /** Memory of the process and its children in bytes, if the keeper ended the processes for exceeding the limit. */
  readonly overMemory: number | undefined;
}

export class AppProcess {
  /** The worker's end of fd 3, which only a harness uses. Undefined if the process could not be started. */
  readonly channel: Duplex | undefined;
  readonly #listener: AppProcessListener;
  /** Undefined if `spawn` threw, because the system refused to start the process. */
  readonly #child: ChildProcess | undefined;
  readonly #env: Readonly<Record<string, string>>;
  readonly #lifeline: Duplex | undefined;
  #overMemory: number | undefined;
  #killed = false;
  #gone = false;
  #keeperLate: NodeJS.Timeout | undefined;

  /** @param command a result of `keptBy` */
  constructor(command: Command, folder: string, env: Readonly<Record<string, string>>, listener: AppProcessListener) {
    this.#listener = listener;
    this.#env = env;
    this.#child = this.#spawn(command, folder);
    this.#child?.once('error', (error) => this.#spawnFailed(error));
    this.#child?.once('exit', (code, signal) => void this.#exited(code, signal));
    if (this.#child?.stdout) this.#readLines(this.#child.stdout, 'stdout');
    if (this.#child?.stderr) this.#readLines(this.#child.stderr, 'stderr');
    this.channel = this.#end(CHANNEL);
    this.#lifeline = this.#end(LIFELINE);
    for (const end of this.#ends) end.on('error', () => {}); // 'exit' reports the end
    this.#readKeeper();
  }

  /** The keeper's process id. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether the keeper's end is not known yet. */
  get alive(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  /** Sends SIGTERM to the keeper, which passes it on to the process group. */
  terminate(): void {
    this.#child?.kill('SIGTERM');
  }

  /** Ends the process, and every process that it started, immediately. */
  kill(): void {
    this.#killed = true;
    this.#lifeline?.destroy();
    this.#keeperLate ??= setTimeout(() => this.#child?.kill('SIGKILL'), KEEPER_GRACE_MS);
  }

  /** Throws nothing, because a failed start of one app must not end the worker. */
  #spawn(command: Command, folder: string): ChildProcess | undefined {
    try {
      return spawn(command.file, command.args, {
        cwd: folder,
        env: keptEnv(this.#env),
        // When the worker closes the lifeline, the keeper ends every process. It also closes fd 3, so fd 3 must not be a file that the keeper opened.
        stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
        detached: true,
      });
    } catch (error) {
      process.nextTick(() => this.#spawnFailed(error as Error)); // the listener expects events after the constructor
      return undefined;
    }
  }

  /** Returns a socket: 'pipe' creates one. Node's types know the extra descriptors only as either direction. */
  #end(descriptor: number): Duplex | undefined {
    return (this.#stdio[descriptor] as Duplex | null | undefined) ?? undefined;
  }

  get #ends(): Duplex[] {
    return this.#stdio.slice(1).filter((end) => end !== null && end !== undefined) as Duplex[];
  }

  /** Node sets no `stdio` when `spawn` fails with EMFILE. */
  get #stdio(): readonly unknown[] {
    return (this.#child?.stdio as readonly unknown[] | undefined) ?? [];
  }

  #readKeeper(): void {
    const lines = new LogLines((texts) => {
      for (const text of texts) this.#keeperReports(keeperMessage(text));
    });
    let bytes = 0;
    this.#lifeline?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > KEEPER_BYTES) this.#lifeline?.pause();
      else lines.push(chunk);
    });
  }

  #keeperReports(word: KeeperMessage | undefined): void {
    if (word?.t === 'kept') this.#listener.kept(word.contained);
    else if (word) this.#overMemory = word.bytes;
  }

  #readLines(pipe: Readable, stream: 'stdout' | 'stderr'): void {
    const lines = new LogLines((texts) => this.#listener.lines(stream, texts));
    pipe.on('data', (chunk: Buffer) => {
      const pauseMs = Math.floor(Math.max(lines.push(chunk) / RAW_LINES_PER_MS, chunk.length / RAW_BYTES_PER_MS));
      if (pauseMs === 0 || this.#gone) return;
      pipe.pause();
      setTimeout(() => pipe.resume(), pauseMs).unref();
    });
    pipe.on('close', () => lines.end());
  }

  #spawnFailed(error: Error): void {
    if (this.pid !== undefined) return; // the error is about a signal that could not be sent
    this.#listener.unstartable(spawnFailure(error, this.#env));
    void this.#exited(null, null);
  }

  async #exited(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    clearTimeout(this.#keeperLate);
    this.#gone = true;
    const killed = this.#killed;
    for (const end of this.#ends) end.resume();
    await this.#drained();
    for (const end of this.#ends) end.destroy();
    this.#listener.exited({ code, signal, killed, overMemory: this.#overMemory });
  }

  async #drained(): Promise<void> {
    const open = this.#ends.filter((end) => !end.closed);
    const closed = Promise.all(open.map((end) => new Promise((resolve) => end.once('close', resolve))));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, EXIT_DRAIN_MS);
    });
    await Promise.race([closed, late]);
    clearTimeout(timer);
    // A busy event loop runs a late timer before it reads the pipes. Two more rounds read the remaining output.
    for (let round = 0; round < 2; round++) await new Promise((resolve) => setImmediate(resolve));
  }
}
