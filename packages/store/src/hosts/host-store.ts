// Contract 4, "Isolation": open attempts per receiver, parked deliveries and circuits. All dispatchers share them.
import { randomBytes } from 'node:crypto';
import type { DueDelivery } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { ParkReason } from '../deliveries/delivery-record.ts';
import { hostsPrefix, names } from '../keys.ts';
import { TickBatch, withinLimit } from '../redis.ts';
import { runScriptAt } from '../scripts.ts';
import { hostLookScript } from './host-look.ts';
import { type HostAnswer, type HostLimits, type HostStep, hostsScript, type Woken } from './hosts.ts';

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

export type SlotAnswer =
  | { readonly state: 'open'; readonly slot: Slot }
  | { readonly state: 'parked'; readonly reason: ParkReason };

/** `parked`: the delivery was parked before. `forced`: the delivery enters for any number of open attempts. */
export type SlotRequest = 'normal' | 'parked' | 'forced';

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
  readonly kind: HostStep['kind'];
  readonly slot: Slot;
  readonly share: number;
  readonly flag: string;
}

const FLAGS: Readonly<Record<SlotRequest, string>> = { normal: 'n', parked: 'p', forced: 'f' };
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
  readonly #steps: TickBatch<Step, HostAnswer>;
  #onWoken: (slots: readonly Slot[]) => void = () => {};
  /** Names of slots only need to be unique: this process' part of the name is random, and the rest is a counter. */
  readonly #names = randomBytes(6).toString('hex');
  #acquired = 0;
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
  async acquire(due: DueDelivery, host: string, request: SlotRequest, share: number): Promise<SlotAnswer> {
    const { project, runId, attempt } = due;
    this.#acquired += 1;
    const slot = {
      project,
      runId,
      attempt,
      host,
      passUntil: 0,
      name: `${attempt} ${project} ${runId} ${this.#names}${this.#acquired}`,
    };
    const answer = await this.#steps.add('', { kind: 'acquire', slot, share, flag: FLAGS[request] });
    switch (answer) {
      case 'parked circuit_open':
        return { state: 'parked', reason: 'circuit_open' };
      case 'parked host_busy':
        return { state: 'parked', reason: 'host_busy' };
      case 'parked project_busy':
        return { state: 'parked', reason: 'project_busy' };
      case 'open':
        return { state: 'open', slot: { ...slot, passUntil: performance.now() + PASS_MS } };
      default:
        return { state: 'open', slot };
    }
  }

  /**
   * Gives a slot back, with the meaning of its attempt for the receiver.
   *
   * @param share the same as for `acquire`
   * @returns whether a parked delivery was woken
   */
  async release(slot: Slot, signal: CircuitSignal, share: number): Promise<boolean> {
    const answer = await this.#steps.add('', { kind: 'release', slot, share, flag: signal });
    if (signal === 'good' && !this.#hasSucceeded(slot)) {
      if (this.#succeeded.size >= SUCCEEDED_LINES) this.#succeeded.clear();
      this.#succeeded.set(lineOf(slot), performance.now() + SUCCEEDED_MS);
    }
    return answer === 'woke';
  }

  /** Gives an unused slot back, because this process stops. Parked deliveries are left to other dispatchers. */
  async releaseUnused(slot: Slot): Promise<void> {
    await this.#steps.add('', { kind: 'release_unused', slot, share: 0, flag: 'none' });
  }

  #hasSucceeded(slot: Slot): boolean {
    return (this.#succeeded.get(lineOf(slot)) ?? 0) > performance.now();
  }

  /** Wakes due probes. @returns deliveries whose slots have expired, because their dispatcher died or never received the slot */
  async checkReceivers(): Promise<DueDelivery[]> {
    const asked = runScriptAt(this.#redis, hostLookScript, hostsPrefix, { limits: this.#limits(), most: LOOKED_AT });
    const { woken, lapsed } = await withinLimit(asked, this.#options.commandMs);
    this.#beginWoken(woken);
    return [...lapsed];
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

  async #send(steps: readonly Step[]): Promise<HostAnswer[]> {
    // Slots are given back first, which makes room for new attempts.
    const order = [...steps].sort((a, b) => Number(a.kind === 'acquire') - Number(b.kind === 'acquire'));
    const sent = order.map(({ kind, slot, share, flag }) => {
      const { project, host, runId, attempt, name } = slot;
      return { kind, project, host, runId, attempt, slot: name, share, succeeded: this.#hasSucceeded(slot), flag };
    });
    const asked = runScriptAt(this.#redis, hostsScript, hostsPrefix, { limits: this.#limits(), steps: sent });
    const { answers, woken } = await withinLimit(asked, this.#options.commandMs);
    this.#beginWoken(woken);
    const answerOf = new Map(order.map((step, at) => [step, answers[at] as HostAnswer]));
    return steps.map((step) => answerOf.get(step) as HostAnswer);
  }

  #limits(): HostLimits {
    const { leaseMs, perProject, perHost, probeMs, project } = this.#options;
    return { leaseMs: leaseMs + PASS_MS, perLine: perProject, perHost, probeMs, perProject: project };
  }

  /** Begins parked deliveries that received slots. */
  #beginWoken(woken: readonly Woken[]): void {
    if (woken.length === 0) return;
    this.#onWoken(
      woken.map(({ slot, watched, ...delivery }) => ({
        ...delivery,
        name: slot,
        passUntil: watched ? 0 : performance.now() + PASS_MS,
      })),
    );
  }
}

/** Returns the store's name of a project's part of a receiver. */
const lineOf = ({ project, host }: Slot): string => `${project} ${host}`;
