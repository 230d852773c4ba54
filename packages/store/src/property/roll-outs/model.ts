// Judges a history of deployments and calls after each call of the store. Written from contract 7, independently of the scripts:
// no call is lost, no version executes a call unless it was active or had a share of the calls, and each run names its version.
import { type VersionPlace, versionSteps } from '../../versions/version-steps.ts';

/** The state of the store that the model sees. */
export interface View {
  /** State of each version. */
  readonly versions: ReadonlyMap<string, VersionPlace>;
  /** Fields of the app's deployment. */
  readonly deployment: Readonly<Record<string, string>>;
  /** Fields of each run. Empty: there is no record. */
  readonly runs: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

export const NOTHING: View = { versions: new Map(), deployment: {}, runs: new Map() };

interface KnownRun {
  /** Version that the run named at its acceptance. */
  accepted: string | undefined;
  /** The executing version of each attempt. */
  readonly executions: string[];
  crashes: number;
  raised: boolean;
}

interface LastReport {
  readonly number: number;
  readonly step: string;
}

/** Runs that must have ended now. */
const FATES = new Map<string, (run: KnownRun) => boolean>([
  ['function_error', (run) => run.raised],
  ['replica_crashed', (run) => run.crashes > 1],
]);

export class Model {
  readonly wrong: string[] = [];
  readonly #runs = new Map<string, KnownRun>();
  /** Versions that were active or had a share of the calls. */
  readonly #served = new Set<string>();
  /** By app or version: workers that serve it, with the end of their lease (ms). */
  readonly #serving = new Map<string, Map<string, number>>();
  /** By roll-out and worker. */
  readonly #reports = new Map<string, Map<string, LastReport>>();
  /** Time at which the present roll-out got its share (ms). */
  #sharedAt = 0;
  /** By version: time of its last deployment or activation (ms). */
  readonly #usedAt = new Map<string, number>();
  /** Workers that died, or were frozen for a time. */
  readonly silent = new Set<string>();
  readonly seen: Set<string>;

  /** @param seen receives the steps of the table that happen */
  constructor(seen: Set<string>) {
    this.seen = seen;
  }

  renewed(worker: string, served: readonly string[], until: number): void {
    for (const name of served) {
      const workers = this.#serving.get(name) ?? new Map<string, number>();
      this.#serving.set(name, workers.set(worker, until));
    }
  }

  /** A report was executed. A report with a lower number is a late copy. */
  reported(rollOut: string, worker: string, report: LastReport): void {
    const reports = this.#reports.get(rollOut) ?? new Map<string, LastReport>();
    this.#reports.set(rollOut, reports);
    if ((reports.get(worker)?.number ?? 0) < report.number) reports.set(worker, report);
  }

  deployed(version: string, now: number): void {
    this.#usedAt.set(version, now);
  }

  /** A worker executes a run. @param version undefined: the worker has left the version, and returns the run to the queue */
  executes(id: string, version: string | undefined): void {
    const run = this.#runs.get(id);
    if (!run) this.#violated(`${id} was handed out, and it was not accepted`);
    if (!run || version === undefined) return;
    if (!this.#served.has(version)) this.#violated(`${id} was executed by ${version}, which was never active`);
    if (run.executions.length > run.crashes) this.#violated(`${id} was executed twice`);
    run.executions.push(version);
  }

  /** The function of a run has ended. */
  ended(id: string, how: 'return' | 'raise' | 'crash'): void {
    const run = this.#runs.get(id);
    if (!run) return;
    if (how === 'raise') run.raised = true;
    if (how === 'crash') run.crashes++;
  }

  /** Judges one execution of a script. @param caller the worker that sent it */
  judge(script: string, before: View, after: View, now: number, caller?: string): void {
    this.#judgeStates(script, before, after);
    this.#judgeRollOut(before, after, now, caller);
    this.#judgeRuns(script, before, after, now);
    if (script === 'versions-trim') this.#judgeTrim(before, after);
    if (script === 'roll-outs' && Number(after.deployment.until ?? now) < now)
      this.#violated('a roll-out outlived its time');
  }

  /** Judges the end of a history, when everything has come to rest. */
  rest({ runs }: View): void {
    for (const [id, known] of this.#runs) {
      const { state, error, v, attempt } = runs.get(id) ?? {};
      const code = error && (JSON.parse(error) as { code: string }).code;
      if (state === undefined || state === 'queued' || state === 'running') this.#violated(`${id} is lost: ${state}`);
      else if (code === 'worker_lost') {
        if (!this.silent.has(attempt?.split(' ')[1]?.split(':')[0] ?? '')) this.#violated(`${id} lost a living worker`);
      } else if (code ? FATES.get(code)?.(known) !== true : state !== 'succeeded')
        this.#violated(`${id} ended as ${code ?? state}`);
      else if (known.executions.at(-1) !== v)
        this.#violated(`${id} names ${v}, and ${known.executions.at(-1)} executed it`);
    }
  }

  #judgeStates(script: string, before: View, after: View): void {
    for (const [version, to] of after.versions) {
      const from = before.versions.get(version) ?? 'none';
      if (from === to) continue;
      const isKnown = versionSteps.some(
        (step) => step.from === from && step.to === to && step.scripts.some((name) => name === script),
      );
      if (!isKnown) this.#violated(`${version} went from ${from} to ${to} by ${script}`);
      this.seen.add(`${from} → ${to} by ${script}`);
    }
    const { active, target } = after.deployment;
    for (const [version, state] of after.versions) {
      if ((state === 'active') !== (version === active))
        this.#violated(`${version} is ${state}, and ${active} is active`);
      if (state === 'building' && version !== target) this.#violated(`${version} is building without a roll-out`);
    }
    if (target !== undefined && (after.versions.get(target) ?? 'none') === 'none')
      this.#violated(`the target ${target} has no record`);
  }

  #judgeRollOut({ deployment: old }: View, { deployment }: View, now: number, caller: string | undefined): void {
    const { active, target, number, share } = deployment;
    if (share !== undefined && old.share === undefined) {
      this.#readyEverywhere(number, now, caller);
      this.#sharedAt = now;
      this.#served.add(target as string);
    }
    if (active === old.active) return;
    if (active === undefined || active !== old.target || old.mode !== 'activate') {
      this.#violated(`${active} became active, and the roll-out had the target ${old.target}`);
      return;
    }
    this.#readyEverywhere(old.number, now, caller);
    if (old.share !== undefined && now - this.#sharedAt < Number(old.duration))
      this.#violated(`${active} became active before its last step was over`);
    this.#served.add(active);
    this.#usedAt.set(active, now);
  }

  /** Every live worker that serves the app must have reported the roll-out's target as ready. */
  #readyEverywhere(number: string | undefined, now: number, caller: string | undefined): void {
    const reports = this.#reports.get(number ?? '');
    const live = this.#live('app', now);
    for (const worker of live)
      if (reports?.get(worker)?.step !== 'ready') this.#violated(`calls moved, and the worker ${worker} was not ready`);
    if (![...live, caller ?? ''].some((worker) => reports?.get(worker)?.step === 'ready'))
      this.#violated('calls moved, and no live worker was ready');
  }

  #judgeRuns(script: string, before: View, after: View, now: number): void {
    const { active, target, share } = after.deployment;
    for (const [id, { state, v }] of after.runs) {
      const { state: earlier, v: from } = before.runs.get(id) ?? {};
      if (state === undefined) continue;
      if (earlier === undefined) {
        this.#runs.set(id, { accepted: v, executions: [], crashes: 0, raised: false });
        const isNew = v === active || (share !== undefined && v === target);
        if (!isNew) this.#violated(`${id} was accepted for ${v}, and ${active} is active`);
      } else if (state === 'queued' && v !== from) this.#judgeMove(id, from, v, before, after, now);
      if (state === 'queued' && earlier === 'running' && script !== 'end')
        this.#violated(`${id} was requeued by ${script}`);
    }
  }

  /** A queued run may change its version only if no worker has its version, or if its version's share was taken back. */
  #judgeMove(
    id: string,
    from: string | undefined,
    to: string | undefined,
    before: View,
    after: View,
    now: number,
  ): void {
    const isUndone = before.deployment.share !== undefined && before.deployment.target === from;
    const isLegal = from === undefined || isUndone || this.#live(from, now).length === 0;
    if (!isLegal || to !== after.deployment.active) this.#violated(`the queued run ${id} moved from ${from} to ${to}`);
  }

  #judgeTrim(before: View, after: View): void {
    const usedAt = (version: string): number => this.#usedAt.get(version) ?? 0;
    for (const [version, state] of before.versions) {
      if (state === 'none' || after.versions.get(version) !== 'none') continue;
      for (const [id, run] of after.runs)
        if (run.v === version && (run.state === 'queued' || run.state === 'running'))
          this.#violated(`${version} was removed, and ${id} needs it`);
      const later = [...after.versions].filter(
        ([other, kept]) =>
          kept !== 'none' && (kept === 'failed') === (state === 'failed') && usedAt(other) >= usedAt(version),
      );
      if (later.length === 0) this.#violated(`${version} was removed, and no other version was used later`);
    }
  }

  #live(name: string, now: number): string[] {
    return [...(this.#serving.get(name) ?? [])].filter(([, until]) => until > now).map(([worker]) => worker);
  }

  #violated(text: string): void {
    this.wrong.push(text);
  }
}
