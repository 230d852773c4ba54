// Plays a history of deployments and calls against the real scripts: gateways, workers that die, and calls of the store whose replies are lost
// or whose late copies are executed again. The clock is the test's.
import type { Reply, SteppedStore } from '../../lua-tests/stepped-store.ts';
import type { ScriptName } from '../../script-files.ts';
import type { ScriptArgument } from '../../scripts.ts';
import type { VersionPlace } from '../../versions/version-steps.ts';
import { Model, NOTHING, type View } from './model.ts';
import { PlayedWorker } from './played-worker.ts';
import { type Step, VERSIONS, WORKERS } from './steps.ts';

export const APP = 'app';
export const LEASE_MS = 15_000;
/** Time between two renewals and reaps. Below the pause after which reap gives every lease a fresh term. */
const ROUND_MS = 4_000;
/** Time limit of a roll-out. */
const TERM_MS = 60_000;
const NEVER_MS = 1e9;
/** Rounds until everything has come to rest. */
const REST_ROUNDS = 60;

/** What the model learns from a call of the store. */
interface About {
  /** The worker that sends the call. */
  readonly caller?: string;
  /** Called at each execution, also of a late copy. */
  readonly executed?: (model: Model, now: number) => void;
}

interface Sent extends About {
  readonly script: ScriptName;
  readonly args: readonly ScriptArgument[];
}

const names = Array.from({ length: VERSIONS }, (_, n) => String.fromCharCode(97 + n).repeat(64));

export class World {
  readonly model: Model;
  view: View = NOTHING;
  readonly #workers: PlayedWorker[] = [];
  readonly #sent: Sent[] = [];
  readonly #runs: string[] = [];
  #born = 0;

  readonly #store: SteppedStore;

  constructor(store: SteppedStore, seen: Set<string>) {
    this.#store = store;
    this.model = new Model(seen);
  }

  /** Plays the steps until everything has come to rest. Returns the sentences of the model that do not hold. */
  async play(steps: readonly Step[]): Promise<readonly string[]> {
    const description = { app: APP, state: 'ready', deployed: true };
    await this.#store.client.hset(`${this.#store.prefix}apps`, APP, JSON.stringify(description));
    for (let n = 0; n < WORKERS; n++) this.#workers.push(this.#newWorker());
    await this.#reap();
    for (const step of steps) {
      await this.#step(step);
      if (this.model.wrong.length > 0) return this.model.wrong;
    }
    await this.#rest();
    this.model.rest(this.view);
    return this.model.wrong;
  }

  /** Executes a script and lets the model judge the execution. */
  async call(script: ScriptName, args: readonly ScriptArgument[], about: About = {}): Promise<Reply> {
    const sent = { script, args, ...about };
    this.#sent.push(sent);
    return this.#execute(sent);
  }

  isStored(version: string): boolean {
    return this.view.versions.get(version) !== 'none';
  }

  /** Returns how new calls move to a version, as its manifest says. */
  stepsOf(version: string): { readonly durationMs: number; readonly abort: string } {
    const at = names.indexOf(version);
    return { durationMs: at % 2 === 0 ? 0 : 20_000, abort: at === 3 ? '40' : '' };
  }

  async #execute({ script, args, caller, executed }: Sent): Promise<Reply> {
    const before = this.view;
    const reply = await this.#store.run(script, ...args);
    this.view = await this.#look();
    executed?.(this.model, this.#store.now());
    this.model.judge(script, before, this.view, this.#store.now(), caller);
    return reply;
  }

  async #look(): Promise<View> {
    const { prefix, client } = this.#store;
    const read = client.pipeline().hgetall(`${prefix}deployment:${APP}`);
    for (const name of names) read.hget(`${prefix}version:${APP}:${name}`, 'state');
    for (const id of this.#runs) read.hgetall(`${prefix}run:${id}`);
    const [deployment, ...found] = ((await read.exec()) ?? []).map(([, value]) => value);
    return {
      deployment: deployment as Record<string, string>,
      versions: new Map(names.map((name, at) => [name, (found[at] as VersionPlace | null) ?? 'none'])),
      runs: new Map(this.#runs.map((id, at) => [id, found[names.length + at] as Record<string, string>])),
    };
  }

  async #step(step: Step): Promise<void> {
    switch (step.type) {
      case 'calls':
        return this.#accept(step.count, step.fate === 'lost');
      case 'deploy':
        await this.#deploy(names[step.version] as string, step.mode);
        if (step.fate === 'lost') await this.#repeat();
        return;
      case 'activate':
        await this.call('version-activate', [APP, names[step.version] as string, 'ada', TERM_MS]);
        if (step.fate === 'lost') await this.#repeat();
        return;
      case 'look':
        return this.#worker(step.worker).look();
      case 'report':
        return this.#worker(step.worker).report(step.step, step.fate);
      case 'take':
        return this.#worker(step.worker).take(step.slots, step.fate);
      case 'end':
        return this.#worker(step.worker).end(step.how, step.fate);
      case 'work':
        return this.#worker(step.worker).work();
      case 'die':
        return this.#replace(step.worker);
      case 'freeze':
        this.#worker(step.worker).isFrozen = true;
        this.model.silent.add(this.#worker(step.worker).id);
        return;
      case 'thaw':
        this.#worker(step.worker).isFrozen = false;
        return;
      case 'roll-outs':
        await this.call('roll-outs', [100]);
        return;
      case 'trim':
        await this.call('versions-trim', [1]);
        return;
      case 'wait':
        return this.#wait(step.ms);
      case 'late copy': {
        const copy = this.#sent.at(-1 - step.back);
        if (copy) await this.#execute(copy);
      }
    }
  }

  async #accept(count: number, isRepeated: boolean): Promise<void> {
    const ids = Array.from({ length: count }, (_, n) => `r${this.#runs.length + n}`);
    this.#runs.push(...ids);
    const kind = [APP, 'fn', `${NEVER_MS} - p`, 10_000, NEVER_MS, '-', 1];
    const runs = ids.flatMap((id) => [1, id, '{}', 0]);
    await this.call('accept', [this.#store.now() + 2_000, 'g', LEASE_MS, 1e9, 1, ...kind, ...runs]);
    if (isRepeated) await this.#repeat();
  }

  async #deploy(version: string, mode: 'activate' | 'build'): Promise<void> {
    await this.call('version-deploy', [APP, version, version, 1, '', 'ada', mode, TERM_MS], {
      executed: (model, now) => model.deployed(version, now),
    });
  }

  /** Repeats the last call, whose reply was lost. */
  async #repeat(): Promise<void> {
    const last = this.#sent.at(-1);
    if (last) await this.#execute(last);
  }

  #replace(at: number): void {
    const worker = this.#worker(at);
    worker.isDead = true;
    this.model.silent.add(worker.id);
    this.#workers[at] = this.#newWorker();
  }

  /** Lets time pass. Workers renew their leases, and gateways reap. */
  async #wait(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= ROUND_MS) {
      for (const worker of this.#workers) await worker.renew();
      this.#store.advance(Math.min(left, ROUND_MS));
      await this.#reap();
    }
  }

  async #reap(): Promise<void> {
    await this.call('reap', [ROUND_MS + 1_000, LEASE_MS, NEVER_MS, 10_000, 200, 1_000]);
  }

  /** Ends the faults. Every worker works until every run has ended. */
  async #rest(): Promise<void> {
    for (const worker of this.#workers) worker.isFrozen = false;
    for (let round = 0; round < REST_ROUNDS && this.model.wrong.length === 0; round++) {
      const { active, target } = this.view.deployment;
      if (active === undefined && target === undefined) await this.#deploy(names[0] as string, 'activate');
      for (const worker of this.#workers) await worker.work();
      await this.call('roll-outs', [100]);
      await this.#wait(ROUND_MS);
      const isOpen = [...this.view.runs.values()].some(({ state }) => state === 'queued' || state === 'running');
      if (!isOpen && !this.#workers.some(({ isBusy }) => isBusy)) return;
    }
  }

  #worker(at: number): PlayedWorker {
    return this.#workers[at] as PlayedWorker;
  }

  #newWorker(): PlayedWorker {
    return new PlayedWorker(`w${++this.#born}`, this);
  }
}
