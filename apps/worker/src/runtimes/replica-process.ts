// harness/PROTOCOL.md, "The process": a function's process, and the channel by which its worker speaks with it.
import { AppProcess, type AppProcessListener } from './app-process.ts';
import { type BlobLimits, FrameReader } from './frame-reader.ts';
import type { Command } from './keeper.ts';
import { type Header, type InitMessage, ProtocolError } from './protocol.ts';

/** How long a process may outlive its channel. */
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

  /** @param command one that `keptBy` gave */
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

  /** Whether it can be spoken with. One that has died cannot, before its end is told: until then its keeper ends what it started. */
  get open(): boolean {
    const { channel } = this.#process;
    return channel !== undefined && !channel.readableEnded && !channel.destroyed;
  }

  /** All that one tick has to say goes in one write. */
  send(...parts: Buffer[]): void {
    const { channel } = this.#process;
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

  /** Ends the process and what it started, at once. */
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
        channel.destroy(); // whatever it says further is not heard
        this.#listener.lines('stderr', [`harness protocol broken: ${error.message}`]);
        this.kill();
      }
    });
    channel?.on('close', () => this.#closed());
  }

  /** Without its channel a process is of no use, should it still live: mostly its `exit` is just on the way. */
  #closed(): void {
    if (this.#process.alive) this.#outlived = setTimeout(() => this.kill(), OUTLIVES_MS);
  }
}
