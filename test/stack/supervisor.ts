// The parts of the stack together: Redis first and last, the others side by side up and one after the other down.
import type { Output } from './output.ts';
import { Part, type PartSpec } from './part.ts';
import { removePids, writePids } from './pid-file.ts';

export interface SupervisorOptions {
  readonly dataDir: string;
  /** All are started side by side. They are stopped group by group in this order, those of a group side by side. */
  readonly parts: readonly (readonly PartSpec[])[];
  /** What they all need: started before them, stopped after them, and never without being asked. */
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

  /** Resolves when every part is ready. @throws Error with the name and reason of the first that does not start; stop it then */
  async start(): Promise<void> {
    await this.#base?.begin();
    await Promise.all(this.#parts().map((part) => part.begin()));
  }

  /** Restarts one part in order. @throws Error where there is none of that name */
  async restart(name: string): Promise<void> {
    const part = this.#parts().find((one) => one.name === name);
    if (!part) throw new Error(`there is no ${name}`);
    await part.restart();
  }

  /** Stops the groups in their order, each before the next. Stopping twice is one stop. */
  stop(): Promise<void> {
    this.#stopping ??= (async () => {
      for (const group of this.#groups) await Promise.all(group.map((part) => part.stop()));
      await this.#base?.stop();
      removePids(this.#options.dataDir);
    })();
    return this.#stopping;
  }

  /** Ends all parts now, but Redis by its own way: what it has accepted it writes. */
  async force(): Promise<void> {
    await Promise.all(this.#parts().map((part) => part.kill()));
    await this.stop();
  }

  #parts(): readonly Part[] {
    return this.#groups.flat();
  }
}
