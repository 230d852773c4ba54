// Leaves this process without a free file descriptor for a while, by its own limit (`prlimit`).
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Below the number of descriptors that a running Node process holds. */
const TOO_FEW = 8;

export class DescriptorLimit {
  #helper: ChildProcess | undefined;
  #released: Promise<unknown> | undefined;

  /** Resolves when every further `open`, `socket` or `pipe` fails with EMFILE. */
  async exhaust(): Promise<void> {
    // The helper starts before the limit: no process can be started afterwards.
    const lower = `prlimit --pid ${process.pid} --nofile=${TOO_FEW}:`;
    const script = `old=$(prlimit --pid ${process.pid} --nofile --output SOFT --noheadings); ${lower}; echo lowered; read _; prlimit --pid ${process.pid} --nofile=$old:`;
    this.#helper = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#released = once(this.#helper, 'exit');
    await once(this.#helper.stdout as NodeJS.ReadableStream, 'data');
  }

  async release(): Promise<void> {
    this.#helper?.stdin?.end('\n');
    await this.#released;
  }
}
