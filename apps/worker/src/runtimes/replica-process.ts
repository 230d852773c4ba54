// harness/PROTOCOL.md, "The process" and "The keeper": starts them, speaks with them, and tells of their end by `exit` and a short drain, never
// by `close`, which waits for everybody who holds a pipe.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import { FrameReader } from './frame-reader.ts';
import { type KeeperWord, keeperWord } from './keeper.ts';
import { LogLines } from './log-lines.ts';
import { type Header, ProtocolError } from './protocol.ts';

/** How long after `exit` the pipes are read for what the process said last; a daemon that holds them open is not waited for. */
const EXIT_DRAIN_MS = 200;

/** What is read of each raw pipe in a millisecond. Whoever writes more waits: reading and dropping would cost the other runs. */
const RAW_LINES_PER_MS = 50;
const RAW_BYTES_PER_MS = 8 * 1024;

/** The keeper ends all that there is within this, unless the system cannot end a process (a disk or a device that does not answer). */
const KEEPER_GRACE_MS = 5_000;

/** A keeper says a line or two. More is not the keeper's, and not read. */
const KEEPER_BYTES = 4 * 1024;

/** A program, by its absolute path, and its arguments. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

export interface ProcessListener {
  /** @throws ProtocolError, which ends the process */
  frame(header: Header, blob: Buffer): void;
  /** Lines on one of the raw pipes. */
  lines(stream: 'stdout' | 'stderr', texts: readonly string[]): void;
  /** The program cannot be started; `exited` follows. */
  unstartable(error: Error): void;
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

export class ReplicaProcess {
  readonly #listener: ProcessListener;
  readonly #child: ChildProcess;
  readonly #channel: Duplex | undefined;
  readonly #lifeline: Duplex | undefined;
  #overMemory: number | undefined;
  #killed = false;
  #gone = false;
  #corked = false;
  #outlived: NodeJS.Timeout | undefined;
  #keeperLate: NodeJS.Timeout | undefined;

  /** @param command one that `keptBy` gave */
  constructor(command: Command, folder: string, env: Readonly<Record<string, string>>, listener: ProcessListener) {
    this.#listener = listener;
    this.#child = spawn(command.file, command.args, {
      cwd: folder,
      env,
      // fd 3 is the protocol; when our end of fd 4 closes, the keeper ends everything.
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child.once('error', (error) => this.#spawnFailed(error));
    this.#child.once('exit', (code, signal) => void this.#exited(code, signal));
    const { stdout, stderr, stdio } = this.#child;
    if (stdout) this.#readLines(stdout, 'stdout');
    if (stderr) this.#readLines(stderr, 'stderr');
    // Node's types know the extra descriptors only as either direction; 'pipe' gives a socket.
    const [channel, lifeline] = [stdio[3], stdio[4]] as (Duplex | null | undefined)[];
    this.#channel = channel ?? undefined;
    this.#lifeline = lifeline ?? undefined;
    this.#readFrames();
    this.#readKeeper();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** All that one tick has to say goes in one write. */
  send(...parts: Buffer[]): void {
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

  pause(): void {
    this.#channel?.pause();
  }

  resume(): void {
    this.#channel?.resume();
  }

  /** Asks the process group to end: the keeper passes it on. */
  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  /** Ends the process and what it started, at once. */
  kill(): void {
    this.#killed = true;
    this.#lifeline?.destroy();
    this.#keeperLate ??= setTimeout(() => this.#child.kill('SIGKILL'), KEEPER_GRACE_MS);
  }

  #readKeeper(): void {
    const lines = new LogLines((texts) => {
      for (const text of texts) this.#keeperSays(keeperWord(text));
    });
    let bytes = 0;
    this.#lifeline?.on('error', () => {});
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

  #readFrames(): void {
    const reader = new FrameReader((header, blob) => this.#listener.frame(header, blob));
    this.#channel?.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.#channel?.destroy(); // whatever it says further is not heard
        this.#listener.lines('stderr', [`harness protocol broken: ${error.message}`]);
        this.kill();
      }
    });
    this.#channel?.on('error', () => {}); // 'exit' tells
    this.#channel?.on('close', () => this.#closed());
  }

  #readLines(pipe: Readable, stream: 'stdout' | 'stderr'): void {
    const lines = new LogLines((texts) => this.#listener.lines(stream, texts));
    pipe.on('data', (chunk: Buffer) => {
      const pauseMs = Math.floor(Math.max(lines.push(chunk) / RAW_LINES_PER_MS, chunk.length / RAW_BYTES_PER_MS));
      if (pauseMs === 0 || this.#gone) return;
      pipe.pause();
      setTimeout(() => pipe.resume(), pauseMs).unref();
    });
    pipe.on('error', () => {});
    pipe.on('close', () => lines.end());
  }

  /** Without its channel a process is of no use, should it still live: mostly its `exit` is just on the way. */
  #closed(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#outlived = setTimeout(() => this.kill(), EXIT_DRAIN_MS);
  }

  #spawnFailed(error: Error): void {
    if (this.pid !== undefined) return; // a signal could not be sent
    this.#listener.unstartable(error);
    void this.#exited(null, null);
  }

  async #exited(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    clearTimeout(this.#outlived);
    clearTimeout(this.#keeperLate);
    this.#gone = true;
    const killed = this.#killed;
    for (const stream of [this.#channel, this.#child.stdout, this.#child.stderr]) stream?.resume();
    await this.#drained();
    for (const stream of this.#child.stdio) stream?.destroy();
    this.#listener.exited({ code, signal, killed, overMemory: this.#overMemory });
  }

  async #drained(): Promise<void> {
    const open = this.#child.stdio.slice(1).filter((stream) => stream && !stream.closed);
    const closed = Promise.all(open.map((stream) => new Promise((resolve) => stream?.once('close', resolve))));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, EXIT_DRAIN_MS);
    });
    await Promise.race([closed, late]);
    clearTimeout(timer);
  }
}
