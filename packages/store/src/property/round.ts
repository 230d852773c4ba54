// Plays one round: two gateways and three workers on a real Redis follow a schedule, come to rest, and are judged.
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunId } from '@inference-proxy/contracts';
import type { ScriptName } from '../script-files.ts';
import { Faults } from './faults.ts';
import { History, type KnownRun } from './history.ts';
import { judge } from './model.ts';
import { Room } from './room.ts';
import type { Step } from './schedule.ts';
import { type Ground, Services, timings } from './services.ts';
import { Standstills } from './standstills.ts';
import { StoredRuns } from './stored-runs.ts';

/** Time within which everything comes to rest, even on a busy machine. */
const LIMIT_MS = 60_000;
const LOOK_MS = 20;
let rounds = 0;

/** @returns the sentences of the model that do not hold */
export async function playRound(
  ground: Ground,
  steps: readonly Step[],
  planted: ReadonlyMap<ScriptName, string> = new Map(),
  limitMs = LIMIT_MS,
): Promise<string[]> {
  const round = new Round(ground, planted, limitMs);
  try {
    await round.begin();
    for (const step of steps) await round.step(step);
    return await round.rest();
  } finally {
    await round.close();
  }
}

class Round {
  /** A separate project, so that a late command of an earlier round does not affect this round. */
  readonly #project = `p${++rounds}`;
  readonly #history = new History();
  readonly #faults: Faults;
  readonly #services: Services;
  readonly #room: Room;
  readonly #stored: StoredRuns;
  readonly #standstills = new Standstills();
  readonly #calls: Promise<void>[] = [];

  readonly #ground: Ground;
  readonly #limitMs: number;

  constructor(ground: Ground, planted: ReadonlyMap<ScriptName, string>, limitMs: number) {
    this.#ground = ground;
    this.#limitMs = limitMs;

    this.#faults = new Faults(planted);
    this.#services = new Services(ground, this.#project, this.#history, this.#faults);
    this.#room = new Room(this.#project, this.#services, this.#history, this.#faults, planted);
    this.#stored = new StoredRuns(this.#project, this.#services, this.#history);
  }

  async begin(): Promise<void> {
    await this.#services.admin.flushdb();
    await this.#services.start();
  }

  async step(step: Step): Promise<void> {
    const services = this.#services;
    switch (step.type) {
      case 'call':
        this.#calls.push(services.gateway(step.gateway).call(step));
        return;
      case 'read': {
        const run = this.#run(step.run);
        // A caller knows a position only from items that it had. So no caller reads from beyond them.
        if (run?.answer !== 'accepted' || run.evicted) return;
        services.gateway(step.gateway).follow(run, step.mode, Math.min(step.from, this.#seen(run)), step.behaviour);
        return;
      }
      case 'cancel': {
        const run = this.#run(step.run);
        if (run) this.#calls.push(services.gateway(step.gateway).cancel(run));
        return;
      }
      case 'cancel first': {
        const plan = { items: [], how: 'return', hurry: false, large: false, head: false } as const;
        this.#calls.push(services.gateway(step.gateway).cancelFirst(plan));
        return;
      }
      case 'look': {
        const run = this.#run(step.run);
        if (run) this.#calls.push(services.gateway(step.gateway).look(run.runId));
        return;
      }
      case 'fault':
        this.#faults.strike(step.script, step.fault, step.ms);
        return;
      case 'swallow':
        this.#faults.swallowMessages(step.count, step.only);
        return;
      case 'freeze':
        services.worker(step.which).freeze();
        return;
      case 'thaw':
        services.worker(step.which).thaw();
        return;
      case 'kill worker':
        await services.replaceWorker(step.which);
        return;
      case 'kill gateway':
        services.replaceGateway(step.which);
        return;
      case 'cut connections':
        services.cutConnections();
        return;
      case 'forget scripts':
        await services.admin.script('FLUSH');
        return;
      case 'evict':
        await this.#room.evict(() => this.#standstills.disturbed);
        return;
      case 'tighten':
        await this.#room.tighten();
        return;
      case 'loosen':
        await this.#room.loosen();
        return;
      case 'restart':
        this.#standstills.disturbed = true;
        await this.#ground.redis.restart();
        return;
      case 'pause':
        this.#ground.redis.pause();
        await sleep(step.ms);
        this.#ground.redis.resume();
        return;
      case 'wait':
        await sleep(step.ms);
    }
  }

  /** Stops the faults. Then everything must end by itself, except the runs that only a caller can end. */
  async rest(): Promise<string[]> {
    await this.#faults.calm();
    await this.#room.loosen();
    for (const worker of this.#services.workers) worker.thaw();
    await Promise.all(this.#calls);
    // A resent accept may still wait in a connection. From here on, no run begins.
    await this.#services.executed();
    for (const run of this.#history.runs.values()) if (run.plan.how === 'stay') this.#endStaying(run);
    const { finals } = this.#stored;
    await this.#wait(async () => {
      const open = this.#history.readings.some((reading) => !reading.settled && !this.#hopeless(reading.runId));
      await this.#stored.read();
      return !open && [...finals.values()].every(({ outcome }) => outcome);
    });
    // Judged before the replays, because their readers would notify waiting readers.
    for (const { runId, settled, left } of this.#history.readings)
      if (!settled && !left && !this.#hopeless(runId)) this.#history.violated(`a reader of ${runId} never got an end`);
    await this.#replay();
    const left = await this.#leftovers();
    await this.#stored.read();
    // A service that was killed before the handover leaves the delivery to reap, which waits for the handover time.
    await this.#wait(async () => {
      if ([...finals.values()].every(({ delivery }) => delivery.jobs !== 0)) return true;
      await this.#stored.takeJobs();
      await this.#stored.read();
      return false;
    });
    const { disturbed } = this.#standstills;
    return [...judge(this.#history, finals, { leaseMs: timings.leaseMs, disturbed }), ...left];
  }

  async close(): Promise<void> {
    this.#standstills.close();
    for (const reading of this.#history.readings) reading.left = true;
    await this.#services.close();
  }

  /** Looks again and again until `holds` returns true, or until the time for coming to rest is over. */
  async #wait(holds: () => boolean | Promise<boolean>, since = () => 0): Promise<void> {
    const begun = performance.now();
    while (!(await holds()) && performance.now() < Math.max(begun, since()) + this.#limitMs) await sleep(LOOK_MS);
  }

  /**
   * Ends a run that waits for a cancel: its readers disconnect. If a disconnect does not cancel the run, the test cancels it. The death of a
   * reader's gateway is a disconnect too, even if the reading settled long ago.
   */
  #endStaying(run: KnownRun): void {
    const gateway = this.#services.gateway(0);
    const readings = this.#history.readings.filter(
      (reading) => reading.runId === run.runId && (!reading.settled || (reading.orphaned && !reading.outcome)),
    );
    const plainly = run.plainly && readings.length > 0;
    for (const reading of readings) if (plainly) gateway.leave(reading);
    if (!plainly) void gateway.cancel(run);
  }

  #hopeless(runId: RunId): boolean {
    const { answer, evicted } = this.#history.run(runId);
    return answer !== 'accepted' || evicted;
  }

  /** Reads every ended run once more from its start, on every gateway. */
  async #replay(): Promise<void> {
    const replays = [...this.#stored.finals]
      .filter(([, { outcome }]) => outcome)
      .flatMap(([runId]) =>
        this.#services.gateways.map((gateway) => {
          void gateway.look(runId);
          return gateway.follow(this.#history.run(runId), 'items', 0, {});
        }),
      );
    await this.#wait(() => replays.every(({ settled }) => settled));
  }

  /** Waits until no key remains. @returns the keys that remain nevertheless */
  async #leftovers(): Promise<string[]> {
    let found: string[] = [];
    const none = async (): Promise<boolean> => {
      found = await this.#stored.leftovers();
      return found.length === 0;
    };
    // Dead services are not forgotten while every lease gets fresh terms.
    await this.#wait(none, () => this.#standstills.at);
    return found.map((name) => `${name} remains after the round`);
  }

  /** Returns the number of items that a reader of the run has had. */
  #seen(run: KnownRun): number {
    const readings = this.#history.readings.filter(({ runId }) => runId === run.runId);
    return Math.max(0, ...readings.map(({ from, texts }) => from + texts.length));
  }

  #run(at: number): KnownRun | undefined {
    const runs = [...this.#history.runs.values()];
    return runs[at % Math.max(1, runs.length)];
  }
}
