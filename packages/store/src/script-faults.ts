// Contract 6: records scripts that fail by a fault of the service, for `/readyz`. Redis still answers a PING in this case.
import type { Redis } from 'ioredis';
import type { ScriptName } from './scripts.ts';
import { storeError } from './store-error.ts';

/** Failures in a row after which a script counts as broken. One or two failures may come from a single project with a damaged key. */
const BROKEN_AFTER = 3;
/** Time after which a fault is forgotten: a service that is not ready gets no calls, so no success could end the fault. */
const FORGOTTEN_AFTER_MS = 10_000;

interface Fault {
  readonly inARow: number;
  /** Time of the last failure, monotonic milliseconds. */
  readonly at: number;
  readonly message: string;
}

/** The scripts of one client that fail by a fault of the service. A success of any project ends a fault. */
export class ScriptFaults {
  static readonly #byClient = new WeakMap<Redis, ScriptFaults>();
  readonly #faults = new Map<ScriptName, Fault>();

  static of(client: Redis): ScriptFaults {
    let faults = ScriptFaults.#byClient.get(client);
    if (!faults) {
      faults = new ScriptFaults();
      ScriptFaults.#byClient.set(client, faults);
    }
    return faults;
  }

  succeeded(name: ScriptName): void {
    if (this.#faults.size > 0) this.#faults.delete(name);
  }

  /** Records a failure. Outages do not count. Adds the script's name to the message, because Redis names the script only by its hash. */
  failed(name: ScriptName, error: unknown): void {
    if (!(error instanceof Error) || storeError(error).code !== 'internal') return;
    error.message += ` (in the script ${name})`;
    const inARow = (this.#faults.get(name)?.inARow ?? 0) + 1;
    this.#faults.set(name, { inARow, at: performance.now(), message: error.message });
  }

  /** Returns the message of the first of `names` that is broken. */
  broken(names: readonly ScriptName[]): string | undefined {
    for (const name of names) {
      const fault = this.#faults.get(name);
      if (!fault || performance.now() - fault.at > FORGOTTEN_AFTER_MS) continue;
      if (fault.inARow >= BROKEN_AFTER) return fault.message;
    }
    return undefined;
  }
}
