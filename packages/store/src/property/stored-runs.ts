// Reads the state of the round's project from the store, for the model: the runs, and the keys that remain after them.
import type { DeliveryJob, Outcome, RunId } from '@inference-proxy/contracts';
import { type History, patiently } from './history.ts';
import type { Final } from './model.ts';
import type { Services } from './services.ts';
import type { SimulatedGateway } from './simulated-gateway.ts';

export class StoredRuns {
  /** The runs as they were last read. */
  readonly finals = new Map<RunId, Final>();

  readonly #project: string;
  readonly #services: Services;
  readonly #history: History;

  constructor(project: string, services: Services, history: History) {
    this.#project = project;
    this.#services = services;
    this.#history = history;
  }

  /** Reads every known run of the store. */
  async read(): Promise<void> {
    const gateway = this.#services.gateway(0);
    const handedOver = await this.#handedOver();
    for (const { runId } of this.#history.runs.values()) {
      const final = await this.#readRun(gateway, runId, handedOver);
      if (final) this.finals.set(runId, final);
    }
  }

  /** Takes the waiting jobs of deliveries, as a dispatcher does: reap repeats no lost job while other jobs wait. */
  async takeJobs(): Promise<void> {
    await this.#services.admin.del('{ip}:deliveries:wait');
  }

  /** Returns the remaining keys that only open runs and living services may have. */
  async leftovers(): Promise<string[]> {
    const { admin, workers } = this.#services;
    const alive = new Set(workers.map(({ id }) => id));
    const prefix = `ip:{${this.#project}}:`;
    const found: string[] = [];
    for (const key of await admin.keys(`${prefix}*`)) {
      const name = key.slice(prefix.length);
      if (/^(leases|absent|queue:.*|following:.*)$/.test(name)) found.push(name);
      if (!name.startsWith('waiting:')) continue;
      for (const id of await admin.zrange(key, '0', '-1')) if (!alive.has(id)) found.push(`${name} of dead ${id}`);
    }
    return found;
  }

  async #readRun(gateway: SimulatedGateway, runId: RunId, handedOver: readonly RunId[]): Promise<Final | undefined> {
    const { admin } = this.#services;
    const key = `ip:{${this.#project}}:run:${runId}`;
    if (!(await admin.exists(key))) return undefined;
    const record = await patiently(() => gateway.store.lookUp(this.#project, runId));
    const batches = await patiently(() => gateway.store.items(this.#project, runId));
    const attempt = await admin.hget(key, 'attempt');
    const jobs = record?.webhook ? handedOver.filter((id) => id === runId).length : -1;
    return {
      outcome: record?.outcome,
      result: record?.outcome && (await patiently(() => this.#resultOf(gateway, runId, record.outcome as Outcome))),
      gone: record?.gone ?? 0,
      texts: batches.flatMap((batch) => batch.blob.toString().split('\n')),
      token: attempt?.split(' ')[1],
      counted: Number(await admin.hget(key, 'size')),
      delivery: { jobs, due: (await admin.zscore(`ip:{${this.#project}}:due`, runId)) !== null },
    };
  }

  /** Returns the result of an outcome, from the store if the result is too large for the outcome. */
  async #resultOf(gateway: SimulatedGateway, runId: RunId, outcome: Outcome): Promise<string | undefined> {
    if (outcome.resultBytes === undefined) return outcome.result?.toString();
    const pieces: Buffer[] = [];
    for await (const piece of gateway.store.result(this.#project, runId, outcome.resultBytes)) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  }

  /** Returns the runs whose first attempt is in a job. */
  async #handedOver(): Promise<RunId[]> {
    const { admin } = this.#services;
    const keys = await admin.keys('{ip}:deliveries:*-*-*');
    const jobs = await Promise.all(keys.map((key) => admin.hget(key, 'data')));
    const carried = jobs.flatMap((data) => (JSON.parse(data ?? '{"deliveries":[]}') as DeliveryJob).deliveries);
    return carried.filter(({ attempt }) => attempt === 1).map(({ runId }) => runId);
  }
}
