// harness/PROTOCOL.md, "The process": a function's process, and its channel to the worker.
import { AppProcess, type AppProcessListener } from './app-process.ts';
import { type BlobLimits, FrameReader } from './frame-reader.ts';
import type { Command } from './keeper.ts';
import { type Header, type InitMessage, ProtocolError } from './protocol.ts';

/** The time for which a process may outlive its channel. */
const OUTLIVES_MS = 200;

export interface ProcessListener extends AppProcessListener {
  /** @throws ProtocolError, which ends the process */
  frame(header: Header, blob: Buffer): void;
}

export class ReplicaProcess {
  readonly #listener: ProcessListener;
  readonly #process: AppProcess;
  #corked = false;
  #outlived: NodeJS.Timeout | undefined;

  /** @param command a result of `keptBy` */
  constructor(command: Command, init: InitMessage, env: Readonly<Record<string, string>>, listener: ProcessListener) {
    this.#listener = listener;
    this.#process = new AppProcess(command, init.app, env, {
      lines: (stream, texts) => listener.lines(stream, texts),
      unstartable: (why) => listener.unstartable(why),
      kept: (contained) => listener.kept(contained),
      exited: (how) => {
        clearTimeout(this.#outlived);
        listener.exited(how);
      },
    });
    this.#readFrames(init);
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Whether the channel is open. It closes when the process dies. `exited` follows later, after the keeper has ended the other processes. */
  get open(): boolean {
    const { channel } = this.#process;
    return channel !== undefined && !channel.readableEnded && !channel.destroyed;
  }

  /** Sends the parts. One write sends every part of a tick. */
  send(...parts: Buffer[]): void {
    const { channel } = this.#process;
    if (!channel?.writable) return; // the process is ending, and its runs end with it
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

  /** Ends the process, and every process that it started, immediately. */
  kill(): void {
    this.#process.kill();
  }

  #readFrames(limits: BlobLimits): void {
    const { channel } = this.#process;
    const reader = new FrameReader(limits, (header, blob) => this.#listener.frame(header, blob));
    channel?.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        channel.destroy(); // stops reading further frames
        this.#listener.lines('stderr', [`harness protocol broken: ${error.message}`]);
        this.kill();
      }
    });
    channel?.on('close', () => this.#closed());
  }

  /** Kills a process that outlives its channel, because it cannot serve. Usually `exit` follows at once. */
  #closed(): void {
    if (this.#process.alive) this.#outlived = setTimeout(() => this.kill(), OUTLIVES_MS);
  }
}
