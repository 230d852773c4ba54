// Contract 4, "Isolation": open attempts per receiver, parked deliveries and circuits. All dispatchers share them.
import { randomBytes } from 'node:crypto';
import type { DueDelivery, RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { ParkReason } from '../deliveries/delivery-store.ts';
import { hostsPrefix, names } from '../keys.ts';
import { runScriptAt, type ScriptArgument } from '../scripts.ts';
import { TickBatch } from '../tick-batch.ts';
import { withinLimit } from '../time-limit.ts';

/** The permission to have one attempt open at a receiver, under a lease. */
export interface Slot extends DueDelivery {
  /** `host:port`. */
  readonly host: string;
  readonly name: string;
  /** Time (`performance.now()`) until which this process may reuse the slot for further attempts without a call to the store. */
  readonly passUntil: number;
}

/** The meaning of an attempt for its receiver's circuit. `none`: no meaning, for example if the attempt was not sent. */
export type CircuitSignal = 'good' | 'bad' | 'none';

export type Entered =
  | { readonly state: 'open'; readonly slot: Slot }
  | { readonly state: 'parked'; readonly reason: ParkReason };

/** `parked`: the delivery was parked before. `forced`: the delivery enters for any number of open attempts. */
export type Entry = 'normal' | 'parked' | 'forced';

export interface HostStoreOptions {
  /** Lease of a slot, ms. Longer than an attempt may take. */
  readonly leaseMs: number;
  /** Open attempts of one project to one host and port. */
  readonly perProject: number;
  /** Open attempts to one host and port, over all projects. */
  readonly perHost: number;
  /** Open attempts of one project over all hosts. */
  readonly project: number;
  /** Time from the opening of a circuit to its first probe, ms. It doubles up to 60 times this value. */
  readonly probeMs: number;
  /** Time limit of a call to the store, ms. */
  readonly commandMs: number;
}

interface Step {
  readonly kind: 'enter' | 'leave' | 'drop';
  readonly slot: Slot;
  readonly share: number;
  readonly flag: string;
}

type WokenReply = [project: Buffer, run: Buffer, attempt: number, host: Buffer, slot: Buffer, watched: number][];

const FLAGS: Readonly<Record<Entry, string>> = { normal: 'n', parked: 'p', forced: 'f' };
/**
 * Time for which a slot serves several attempts. Then the slot goes back for parked deliveries and other dispatchers. After a recent
 * failure, a slot goes back after each attempt.
 */
const PASS_MS = 100;
/** Lines per call, so that the call stays short. */
const LOOKED_AT = 50;
/** Time for which a receiver's success is not reported to the store again. The store keeps a success for 30 days. */
const SUCCEEDED_MS = 3_600_000;
const SUCCEEDED_LINES = 10_000;

export class HostStore {
  readonly #steps: TickBatch<Step, string>;
  #onWoken: (slots: readonly Slot[]) => void = () => {};
  /** Names of slots only need to be unique: this process' part of the name is random, and the rest is a counter. */
  readonly #names = randomBytes(6).toString('hex');
  #entered = 0;
  /** Lines whose success the store knows, and the time (`performance.now()`) until which it is not reported again. */
  readonly #succeeded = new Map<string, number>();

  readonly #redis: Redis;
  readonly #options: HostStoreOptions;

  constructor(redis: Redis, options: HostStoreOptions) {
    this.#redis = redis;
    this.#options = options;

    this.#steps = new TickBatch(
      (_, steps) => this.#send(steps),
      () => 0,
    );
  }

  /** Sets the function that begins parked deliveries after their slots were granted. Without it, the slots expire. */
  onWoken(begin: (slots: readonly Slot[]) => void): void {
    this.#onWoken = begin;
  }

  /**
   * Returns a slot for an attempt, or the reason why the delivery was parked. A parked delivery goes to `onWoken`, here or in another dispatcher.
   *
   * @param share attempts that its project may have open at the receiver without a recent failure, over all dispatchers; at least `perProject`
   */
  async enter(due: DueDelivery, host: string, entry: Entry, share: number): Promise<Entered> {
    const { project, runId, attempt } = due;
    this.#entered += 1;
    const slot = {
      project,
      runId,
      attempt,
      host,
      passUntil: 0,
      name: `${attempt} ${project} ${runId} ${this.#names}${this.#entered}`,
    };
    const answer = await this.#steps.add('', { kind: 'enter', slot, share, flag: FLAGS[entry] });
    const [state, reason] = answer.split(' ');
    if (state === 'parked') return { state, reason: reason as ParkReason };
    return { state: 'open', slot: state === 'open' ? { ...slot, passUntil: performance.now() + PASS_MS } : slot };
  }

  /**
   * Gives a slot back, with the meaning of its attempt for the receiver.
   *
   * @param share the same as for `enter`
   * @returns whether a parked delivery was woken
   */
  async leave(slot: Slot, signal: CircuitSignal, share: number): Promise<boolean> {
    const answer = await this.#steps.add('', { kind: 'leave', slot, share, flag: signal });
    if (signal === 'good' && !this.#hasSucceeded(slot)) {
      if (this.#succeeded.size >= SUCCEEDED_LINES) this.#succeeded.clear();
      this.#succeeded.set(lineOf(slot), performance.now() + SUCCEEDED_MS);
    }
    return answer === 'woke';
  }

  /** Gives an unused slot back, because this process stops. Parked deliveries are left to other dispatchers. */
  async drop(slot: Slot): Promise<void> {
    await this.#steps.add('', { kind: 'drop', slot, share: 0, flag: 'none' });
  }

  #hasSucceeded(slot: Slot): boolean {
    return (this.#succeeded.get(lineOf(slot)) ?? 0) > performance.now();
  }

  /** Wakes due probes. @returns deliveries whose slots have expired, because their dispatcher died or never received the slot */
  async look(): Promise<DueDelivery[]> {
    const [woken, lapsed] = (await this.#call('host-look', [...this.#head(), LOOKED_AT])) as [
      WokenReply,
      [project: Buffer, run: Buffer, attempt: number][],
    ];
    this.#beginWoken(woken);
    return lapsed.map(([project, runId, attempt]) => ({ project: String(project), runId: String(runId), attempt }));
  }

  /** Returns figures for metrics, over all dispatchers: open circuits and parked deliveries. */
  async counts(): Promise<{ openCircuits: number; parked: number }> {
    const [openCircuits, parked] = await withinLimit(
      Promise.all([
        this.#redis.zcount(hostsPrefix + names.circuits, Date.now(), '+inf'),
        this.#redis.get(hostsPrefix + names.parkedCount),
      ]),
      this.#options.commandMs,
    );
    return { openCircuits, parked: Number(parked ?? 0) };
  }

  async #send(steps: readonly Step[]): Promise<string[]> {
    // Slots are given back first, which makes room for new attempts.
    const order = [...steps].sort((a, b) => Number(a.kind === 'enter') - Number(b.kind === 'enter'));
    const args = this.#head();
    for (const { kind, slot, share, flag } of order) {
      const known = this.#hasSucceeded(slot) ? '1' : '';
      args.push(kind, slot.project, slot.host, slot.runId, slot.attempt, slot.name, share, known, flag);
    }
    const [answers, woken] = (await this.#call('hosts', args)) as [Buffer[], WokenReply];
    this.#beginWoken(woken);
    const answerOf = new Map(order.map((step, at) => [step, String(answers[at])]));
    return steps.map((step) => answerOf.get(step) as string);
  }

  #head(): ScriptArgument[] {
    const { leaseMs, perProject, perHost, probeMs, project } = this.#options;
    return [leaseMs + PASS_MS, perProject, perHost, probeMs, project];
  }

  #beginWoken(woken: WokenReply): void {
    if (woken.length === 0) return;
    this.#onWoken(
      woken.map(([project, runId, attempt, host, name, watched]) => ({
        project: String(project),
        runId: String(runId) as RunId,
        attempt,
        host: String(host),
        name: String(name),
        passUntil: watched ? 0 : performance.now() + PASS_MS,
      })),
    );
  }

  #call(name: 'hosts' | 'host-look', args: ScriptArgument[]): Promise<unknown> {
    return withinLimit(runScriptAt(this.#redis, name, hostsPrefix, args), this.#options.commandMs);
  }
}

/** Returns the store's name of a project's part of a receiver. */
const lineOf = ({ project, host }: Slot): string => `${project} ${host}`;
