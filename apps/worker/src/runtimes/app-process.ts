// harness/PROTOCOL.md, "The keeper": one process of an app under its keeper: starts it, reads what it prints, and tells of its end by `exit` and
// a short drain, never by `close`, which waits for everybody who holds a pipe.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import { type Command, type KeeperWord, keeperWord, keptEnv } from './keeper.ts';
import { LogLines } from './log-lines.ts';
import { spawnFailure } from './spawn-failure.ts';

/** How long after `exit` the pipes are read for what the process said last. */
const EXIT_DRAIN_MS = 200;

/** What is read of each raw pipe in a millisecond. Whoever writes more waits: reading and dropping would cost the other runs. */
const RAW_LINES_PER_MS = 50;
const RAW_BYTES_PER_MS = 8 * 1024;

/** The keeper ends all that there is within this, unless the system cannot end a process (a disk or a device that does not answer). */
const KEEPER_GRACE_MS = 5_000;

/** A keeper says a line or two. More is not the keeper's, and not read. */
const KEEPER_BYTES = 4 * 1024;

const CHANNEL = 3;
const LIFELINE = 4;

export interface AppProcessListener {
  /** Lines on one of the raw pipes. */
  lines(stream: 'stdout' | 'stderr', texts: readonly string[]): void;
  /** The program cannot be started, with the reason in words; `exited` follows. */
  unstartable(why: string): void;
  /** Whether the system keeps its signals, and its looks at other processes, to itself and what it starts. */
  kept(contained: boolean): void;
  /** Once: the process is gone and all that it started with it, its pipes are read. */
  exited(how: ProcessEnd): void;
}

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** By `kill`. */
  readonly killed: boolean;
  /** What it and what it started held, in bytes, where it was ended for that. */
  readonly overMemory: number | undefined;
}

export class AppProcess {
  /** Our end of the process's fd 3, of which only a harness knows; undefined where it could not be started. */
  readonly channel: Duplex | undefined;
  readonly #listener: AppProcessListener;
  /** Undefined if `spawn` threw: the system refused at once. */
  readonly #child: ChildProcess | undefined;
  readonly #env: Readonly<Record<string, string>>;
  readonly #lifeline: Duplex | undefined;
  #overMemory: number | undefined;
  #killed = false;
  #gone = false;
  #keeperLate: NodeJS.Timeout | undefined;

  /** @param command one that `keptBy` gave */
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
    for (const end of this.#ends) end.on('error', () => {}); // 'exit' tells
    this.#readKeeper();
  }

  /** The keeper's. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether it is still there, as far as is known. */
  get alive(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  /** Asks the process group to end: the keeper passes it on. */
  terminate(): void {
    this.#child?.kill('SIGTERM');
  }

  /** Ends the process and what it started, at once. */
  kill(): void {
    this.#killed = true;
    this.#lifeline?.destroy();
    this.#keeperLate ??= setTimeout(() => this.#child?.kill('SIGKILL'), KEEPER_GRACE_MS);
  }

  /** Throws nothing: one app's process that cannot be started must not end the worker. */
  #spawn(command: Command, folder: string): ChildProcess | undefined {
    try {
      return spawn(command.file, command.args, {
        cwd: folder,
        env: keptEnv(this.#env),
        // When our end of the lifeline closes, the keeper ends everything. It closes fd 3: one that was not there would be of its own files.
        stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
        detached: true,
      });
    } catch (error) {
      process.nextTick(() => this.#spawnFailed(error as Error)); // the listener expects events after the constructor
      return undefined;
    }
  }

  /** Node's types know the extra descriptors only as either direction; 'pipe' gives a socket. */
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
      for (const text of texts) this.#keeperSays(keeperWord(text));
    });
    let bytes = 0;
    this.#lifeline?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > KEEPER_BYTES) this.#lifeline?.pause();
      else lines.push(chunk);
    });
  }

  #keeperSays(word: KeeperWord | undefined): void {
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
    if (this.pid !== undefined) return; // a signal could not be sent
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
    // A busy event loop runs a late timer before it reads the pipes. Two more rounds read what they still hold.
    for (let round = 0; round < 2; round++) await new Promise((resolve) => setImmediate(resolve));
  }
}
