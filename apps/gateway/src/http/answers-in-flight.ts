// Contract 5, "Answers that wait for slow readers": `ANSWERS_IN_FLIGHT_BYTES`, over all callers of this gateway.
import type { ServerResponse } from 'node:http';

interface Waiting {
  readonly room: number;
  readonly enter: () => void;
}

/** Bounds the bytes of large answers that this process holds for their readers. Further answers stay in the store, first come, first served. */
export class AnswersInFlight {
  #held = 0;
  readonly #waiting = new Set<Waiting>();

  readonly #limit: number;

  /** @param limit bytes, `ANSWERS_IN_FLIGHT_BYTES` */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Bytes of all answers that are held now. */
  get heldBytes(): number {
    return this.#held;
  }

  /**
   * Runs `use` when there is room for its bytes, and frees the room when `use` has ended.
   * An answer over the whole limit waits until no other answer is held. `use` does not run if the caller disconnects first.
   */
  async hold(raw: ServerResponse, bytes: number, use: () => Promise<void>): Promise<void> {
    const room = Math.min(bytes, this.#limit);
    if (!(await this.#entered(raw, room))) return;
    try {
      await use();
    } finally {
      this.#held -= room;
      this.#admit();
    }
  }

  #entered(raw: ServerResponse, room: number): Promise<boolean> {
    if (raw.destroyed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiting = {
        room,
        enter: () => {
          raw.off('close', leave);
          resolve(true);
        },
      };
      const leave = (): void => {
        this.#waiting.delete(waiting);
        resolve(false);
        this.#admit();
      };
      raw.once('close', leave);
      this.#waiting.add(waiting);
      this.#admit();
    });
  }

  #admit(): void {
    for (const waiting of this.#waiting) {
      if (this.#held + waiting.room > this.#limit) return;
      this.#waiting.delete(waiting);
      this.#held += waiting.room;
      waiting.enter();
    }
  }
}
