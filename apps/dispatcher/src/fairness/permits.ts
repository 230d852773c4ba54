// Contract 4, "Isolation": the permission of one attempt at its receiver. A permit has the store's slot and a turn of this process.
import type { DueDelivery } from '@inference-proxy/contracts';
import type { CircuitSignal, HostStore, ParkReason, Slot, SlotRequest } from '@inference-proxy/store';
import type { HostTurns, Turn } from './host-turns.ts';

export interface PermitsOptions {
  /** The slots of attempts at their receivers, over all dispatchers. */
  readonly slots: Pick<HostStore, 'acquire' | 'release' | 'releaseUnused'>;
  /** The turns of this process at quick receivers. They avoid most parkings. */
  readonly turns: HostTurns;
  readonly log: { debug(fields: object, text: string): void };
}

/** The permission to have one attempt open at a receiver. Exactly one of the methods ends it. */
export interface Permit {
  /** Releases the slot, or passes it to the next waiting attempt of this process. */
  release(signal: CircuitSignal): Promise<void>;
  /** Releases an unused slot, because this process stops. Otherwise the slot would count until its lease expires. */
  drop(): Promise<void>;
  /** Lets the lease of the slot expire. The store then hands the delivery out again. */
  abandon(): void;
}

export class Permits {
  readonly #options: PermitsOptions;

  constructor(options: PermitsOptions) {
    this.#options = options;
  }

  /** Returns a permit, or the reason why the store parked the delivery. @param host `host:port` @throws errors of the store */
  async request(due: DueDelivery, host: string, kind: SlotRequest): Promise<Permit | ParkReason> {
    const { slots, turns } = this.#options;
    const turn = await turns.enter(due.project, host);
    if (turn?.slot) return this.#permit(turn.slot, turn);
    try {
      const entered = await slots.acquire(due, host, kind, turn?.share ?? 0);
      if (entered.state === 'open') return this.#permit(entered.slot, turn);
      turn?.end();
      return entered.reason;
    } catch (error) {
      turn?.end();
      throw error;
    }
  }

  /** Returns the permit of a woken delivery. Its turn counts from now. */
  ofWoken(slot: Slot): Permit {
    return this.#permit(slot, this.#options.turns.join(slot.project, slot.host));
  }

  #permit(slot: Slot, turn: Turn | undefined): Permit {
    return {
      release: (signal) => this.#release(slot, turn, signal),
      drop: () => {
        turn?.end();
        return this.#drop(slot);
      },
      abandon: () => void turn?.end(),
    };
  }

  async #release(slot: Slot, turn: Turn | undefined, signal: CircuitSignal): Promise<void> {
    // After a recent failure, the circuit sets the number of open attempts. Such a slot has no `passUntil` and cannot be passed on.
    if (signal !== 'none') turn?.report(signal === 'good' && slot.passUntil > 0);
    const isPassed = signal === 'good' && performance.now() < slot.passUntil && turn?.end(slot);
    // The store is not notified of a passed slot, because the number of open slots does not change.
    if (isPassed) return;
    if (await this.#leave(slot, signal, turn?.share ?? 0)) turn?.cede();
    else turn?.end();
  }

  /** @returns whether a parked delivery got the slot */
  async #leave(slot: Slot, signal: CircuitSignal, share: number): Promise<boolean> {
    try {
      return await this.#options.slots.release(slot, signal, share);
    } catch (err) {
      this.#unreleased(slot, err);
      return false;
    }
  }

  async #drop(slot: Slot): Promise<void> {
    try {
      await this.#options.slots.releaseUnused(slot);
    } catch (err) {
      this.#unreleased(slot, err);
    }
  }

  #unreleased({ runId }: Slot, err: unknown): void {
    this.#options.log.debug({ runId, err }, 'a slot was not released; its lease will expire');
  }
}
