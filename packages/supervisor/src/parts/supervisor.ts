// Starts and stops the parts of the stack: Redis starts first and stops last, the others start together and stop one after the other.
import type { Output } from '../output.ts';
import { Part, type PartSpec } from './part.ts';
import { removePids, writePids } from './pid-file.ts';

export interface SupervisorOptions {
  readonly dataDir: string;
  /** All parts start together. The groups stop in this order, and the parts of a group stop together. */
  readonly parts: readonly (readonly PartSpec[])[];
  /** The part that the other parts require. Starts first and stops last. */
  readonly base?: PartSpec;
  readonly output: Output;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #groups: readonly (readonly Part[])[];
  readonly #base: Part | undefined;
  readonly #pids: Record<string, number> = { supervisor: process.pid };
  #stopping: Promise<void> | undefined;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const around = {
      say: options.output.say,
      changed: (name: string, pid: number | undefined) => {
        if (pid === undefined) delete this.#pids[name];
        else this.#pids[name] = pid;
        writePids(options.dataDir, this.#pids);
      },
    };
    this.#groups = options.parts.map((group) => group.map((spec) => new Part(spec, around)));
    this.#base = options.base && new Part(options.base, around);
  }

  /** Resolves when every part is ready. @throws Error with the name and reason of a part that does not start; call `stop` then */
  async start(): Promise<void> {
    await this.#base?.begin();
    await Promise.all(this.#parts().map((part) => part.begin()));
  }

  /** Restarts one part in order. @throws Error if no part has that name */
  async restart(name: string): Promise<void> {
    const part = this.#parts().find((one) => one.name === name);
    if (!part) throw new Error(`the stack has no part ${name}`);
    await part.restart();
  }

  /** Stops the groups in their order, each group after the one before. May be called twice. */
  stop(): Promise<void> {
    this.#stopping ??= (async () => {
      for (const group of this.#groups) await Promise.all(group.map((part) => part.stop()));
      await this.#base?.stop();
      removePids(this.#options.dataDir);
    })();
    return this.#stopping;
  }

  /** Kills all parts, but stops Redis, which writes its accepted data first. */
  async force(): Promise<void> {
    await Promise.all(this.#parts().map((part) => part.kill()));
    await this.stop();
  }

  #parts(): readonly Part[] {
    return this.#groups.flat();
  }
}
