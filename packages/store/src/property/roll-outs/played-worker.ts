// Plays a worker that serves a deployed app: it follows the deployment, reports, takes runs of its versions' queues and ends them.
import type { Reply } from '../../lua-tests/stepped-store.ts';
import type { ScriptArgument } from '../../scripts.ts';
import { queueOf } from '../../workers/take.ts';
import type { End, Fate, ReportedStep } from './steps.ts';
import { APP, LEASE_MS, type World } from './world.ts';

/** Bytes of parameters in one take. */
const ROOM = 1024;

interface Held {
  readonly token: string;
  /** The executing version. Undefined: the worker has no version that can execute the run. */
  readonly version: string | undefined;
  /** The version of the queue. */
  readonly named: string;
  /** The end that was sent and not answered. */
  ending?: End;
}

interface Take {
  readonly args: readonly ScriptArgument[];
  /** Versions of the asked queues, in order, with the free slots of all. */
  readonly versions: readonly string[];
  readonly slots: number;
}

interface Report {
  readonly rollOut: string;
  readonly step: ReportedStep;
  readonly number: number;
  readonly args: readonly ScriptArgument[];
}

export class PlayedWorker {
  isDead = false;
  isFrozen = false;
  /** The version that takes new calls. */
  #current: string | undefined;
  /** The active version, while this worker loads it. */
  #loading: string | undefined;
  /** A version that is ready beside the current version. */
  #held: string | undefined;
  /** Versions that were active, while their queues may have runs. */
  readonly #retiring = new Set<string>();
  #target: { readonly version: string; readonly number: string; readonly mode: string } | undefined;
  readonly #runs = new Map<string, Held>();
  /** Calls of the target that have ended on this worker. */
  #counts = { calls: 0, failed: 0 };
  #takes = 0;
  #reports = 0;
  #untaken: Take | undefined;
  #unreported: Report | undefined;

  readonly #world: World;

  constructor(
    readonly id: string,
    world: World,
  ) {
    this.#world = world;
  }

  get isAwake(): boolean {
    return !this.isDead && !this.isFrozen;
  }

  /** Whether the worker holds a run, or may be leased one. */
  get isBusy(): boolean {
    return this.#runs.size > 0 || this.#untaken !== undefined;
  }

  /** Reads the deployment, as after a message. */
  look(): void {
    if (!this.isAwake) return;
    const { active, target, mode = '', number = '' } = this.#world.view.deployment;
    if (active !== undefined && active !== this.#current && active !== this.#loading) this.#activate(active);
    if (number === (this.#target?.number ?? '')) return;
    this.#held = undefined;
    this.#unreported = undefined;
    this.#counts = { calls: 0, failed: 0 };
    this.#target = target === undefined ? undefined : { version: target, number, mode };
  }

  /** Reports a step of the roll-out. A ready version is prepared beside the current version. */
  async report(step: ReportedStep, fate: Fate): Promise<void> {
    if (!this.isAwake) return;
    if (this.#loading !== undefined) this.#serve(this.#loading);
    const report = this.#unreported ?? this.#newReport(step);
    if (report === undefined) return;
    this.#unreported = report;
    const { rollOut, number, step: sent, args } = report;
    await this.#world.call('version-report', args, {
      caller: this.id,
      executed: (model) => model.reported(rollOut, this.id, { number, step: sent }),
    });
    if (fate === 'answered') this.#unreported = undefined;
  }

  /** Takes runs for free slots, of all queues of this worker's versions. */
  async take(slots: number, fate: Fate): Promise<void> {
    if (!this.isAwake) return;
    const take = this.#untaken ?? this.#newTake(slots);
    if (take === undefined) return;
    const reply = (await this.#world.call('take', take.args, { caller: this.id })) as Reply[];
    this.#untaken = fate === 'lost' ? take : undefined;
    if (fate === 'answered') this.#start(reply, take);
  }

  /** Ends the oldest run. */
  async end(how: End, fate: Fate): Promise<void> {
    const [[id, held] = []] = this.#runs;
    if (!this.isAwake || id === undefined || held === undefined) return;
    const { version, named } = held;
    const sent = held.ending ?? (version === undefined ? 'crash' : how);
    if (held.ending === undefined) this.#world.model.ended(id, sent);
    held.ending = sent;
    const [state, code] = OUTCOMES[sent];
    const error = code === '' ? '' : JSON.stringify({ code, message: 'm' });
    const kind = [
      state,
      0,
      0,
      '',
      code,
      error,
      '',
      sent === 'crash' ? 1 : 0,
      version === undefined || version === named ? '' : version,
    ];
    await this.#world.call('end', [10_000, 1, ...kind, 1, id, held.token, '1', code ? '' : '1'], { caller: this.id });
    if (fate === 'lost') return;
    this.#runs.delete(id);
    if (version !== this.#target?.version) return;
    this.#counts.calls++;
    if (code) this.#counts.failed++;
  }

  async renew(): Promise<void> {
    if (!this.isAwake) return;
    // A take is repeated at once. Otherwise the lease of its runs would end.
    if (this.#untaken) await this.take(0, 'answered');
    const isServed = this.#current !== undefined || this.#target?.mode === 'activate';
    const versions = this.#having();
    const served = [...(isServed ? [APP] : []), ...versions.map((version) => queueOf(APP, version))];
    const held = [...this.#runs].flatMap(([id, { token }]) => [id, token]);
    await this.#world.call('renew', [this.id, LEASE_MS, served.length, ...served, ...held], {
      caller: this.id,
      executed: (model, now) => model.renewed(this.id, [...(isServed ? [APP] : []), ...versions], now + LEASE_MS),
    });
  }

  /** Does all that a healthy worker does. */
  async work(): Promise<void> {
    this.look();
    await this.report('ready', 'answered');
    this.look();
    await this.renew();
    await this.take(4, 'answered');
    while (this.isAwake && this.#runs.size > 0) await this.end('return', 'answered');
  }

  #activate(version: string): void {
    const isPrepared = version === this.#held || this.#retiring.has(version);
    if (isPrepared) this.#serve(version);
    else this.#loading = version;
  }

  #serve(version: string): void {
    if (!this.#world.isStored(version)) return;
    if (this.#held === version) this.#held = undefined;
    this.#retiring.delete(version);
    if (this.#current !== undefined && this.#current !== version) this.#retiring.add(this.#current);
    this.#current = version;
    this.#loading = undefined;
  }

  #newReport(step: ReportedStep): Report | undefined {
    if (this.#target === undefined) return undefined;
    const { version, number } = this.#target;
    if (!this.#world.isStored(version)) return undefined;
    if (step === 'failed') this.#held = undefined;
    else if (step === 'ready' && version !== this.#current) {
      this.#retiring.delete(version);
      this.#held = version;
    }
    const { durationMs, abort } = this.#world.stepsOf(version);
    const own = ++this.#reports;
    const counts = `${this.#counts.calls} ${this.#counts.failed}`;
    const args = [
      APP,
      version,
      number,
      this.id,
      own,
      step,
      'why',
      durationMs,
      abort,
      counts,
      `{"time":"t","text":"x"}`,
    ];
    return { rollOut: number, step, number: own, args };
  }

  #newTake(slots: number): Take | undefined {
    const versions = this.#having();
    if (versions.length === 0) return undefined;
    const queues = versions.flatMap((version) => [queueOf(APP, version), slots, version]);
    return { args: [this.id, ++this.#takes, LEASE_MS, ROOM, ...queues], versions, slots };
  }

  #start([, more, ...runs]: Reply[], { args, versions, slots }: Take): void {
    const got = versions.map(() => 0);
    for (let at = 0; at < runs.length; at += 5) {
      const place = (runs[at + 4] as number) - 1;
      got[place] = (got[place] ?? 0) + 1;
      const named = versions[place] as string;
      // A version that has left since is replaced by the current version.
      const version = this.#having().includes(named) ? named : this.#current;
      this.#world.model.executes(String(runs[at]), version);
      this.#runs.set(String(runs[at]), { token: `${this.id}:${args[1]}`, version, named });
    }
    // A take that finds the queue of an old version empty ends the version.
    for (const [place, version] of versions.entries())
      if (more === 0 && (got[place] ?? 0) < slots) this.#retiring.delete(version);
  }

  #having(): string[] {
    return [...new Set([this.#current, this.#held, ...this.#retiring])].filter((version) => version !== undefined);
  }
}

/** State and error's code of each end. */
const OUTCOMES: Readonly<Record<End, readonly [string, string]>> = {
  return: ['succeeded', ''],
  raise: ['failed', 'function_error'],
  crash: ['failed', 'replica_crashed'],
};
