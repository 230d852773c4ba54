// The room of the round's project: evicts its ended runs, and makes its share small and large again.
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { sweepScript } from '../maintenance/sweep.ts';
import { type ScriptName, scriptSource, scriptText } from '../script-files.ts';
import { runScript } from '../scripts.ts';
import { Faults } from './faults.ts';
import type { History, Reading } from './history.ts';
import { type Services, timings } from './services.ts';

/** Much more than the small runs of a round take, and less than a large item takes. */
const TIGHT_BYTES = 150_000;
const PLENTY_BYTES = 1024 ** 3;

/** List of the evicted runs, written at each eviction. A look before and after would miss a run that began and ended in between. */
const FORGOTTEN = 'forgotten';
const FORGET = 'local function forget(id)\n';
const recordingForgotten = (sweep: string): string =>
  sweep.replace(FORGET, `${FORGET}redis.call('RPUSH', KEYS[1] .. '${FORGOTTEN}', id)\n`);

export class Room {
  /** Connection for the test's own sweeps. Only these sweeps may evict runs. */
  readonly #sweeping: Redis;

  readonly #project: string;
  readonly #services: Services;
  readonly #history: History;
  readonly #faults: Faults;

  /** @param planted scripts that replace the real scripts */
  constructor(
    project: string,
    services: Services,
    history: History,
    faults: Faults,
    planted: ReadonlyMap<ScriptName, string>,
  ) {
    this.#project = project;
    this.#services = services;
    this.#history = history;
    this.#faults = faults;

    const sweep = planted.get('sweep') ?? scriptText(scriptSource('sweep'));
    this.#sweeping = new Faults(new Map([['sweep', recordingForgotten(sweep)]])).commands(services.admin);
  }

  /** Evicts every unpromised ended run without a reader. @param disturbed returns whether a healthy reader may have lost its lease */
  async evict(disturbed: () => boolean): Promise<void> {
    const isRead = ({ mode, served, settled, left }: Reading): boolean =>
      mode === 'items' && served && !settled && !left;
    const read = this.#history.readings.filter(isRead);
    await runScript(this.#sweeping, sweepScript, this.#project, { most: 256, downTo: 0, readMs: timings.leaseMs });
    for (const id of await this.#forgotten()) {
      const run = this.#history.run(id);
      if (run.evicted) continue;
      run.evicted = true;
      if (read.some(({ runId, settled, left }) => runId === id && !settled && !left) && !disturbed())
        this.#history.violated(`${id} was evicted under its reader`);
    }
  }

  /** Lowers the share to a little more than the present bytes. A large item, result or error does not fit. */
  async tighten(): Promise<void> {
    if (this.#faults.share !== undefined) return;
    this.#history.tightened = true;
    await this.#faults.setShare(async () => {
      // One step: a reservation between the two commands would exceed the new share without a fault of the scripts.
      const share = await this.#services.admin.eval(
        "local share = (redis.call('GET', KEYS[1]) or 0) + ARGV[1]; redis.call('SET', KEYS[2], share .. ' 0'); return share",
        2,
        `ip:{${this.#project}}:bytes`,
        `ip:{${this.#project}}:share`,
        TIGHT_BYTES,
      );
      return Number(share);
    });
  }

  /** Raises the share again. */
  async loosen(): Promise<void> {
    const { share } = this.#faults;
    if (share === undefined) return;
    const { admin } = this.#services;
    const bytes = Number(await admin.get(`ip:{${this.#project}}:bytes`));
    if (bytes > share + TIGHT_BYTES) this.#history.violated(`the project holds ${bytes} bytes of a share of ${share}`);
    this.#faults.share = undefined;
    await admin.set(`ip:{${this.#project}}:share`, `${PLENTY_BYTES} 0`);
  }

  #forgotten(): Promise<RunId[]> {
    return this.#services.admin.lrange(`ip:{${this.#project}}:${FORGOTTEN}`, 0, -1);
  }
}
