// Sends large values to Redis, and reads them, one after the other. Together they would delay everything else on their connection, such as
// leases. And each call that is not answered in time would be repeated on top.
import { ServiceError } from '@inference-proxy/contracts';
import { withinLimit } from './redis.ts';

/** Calls with fewer bytes are sent at once. */
const LARGE_BYTES = 256 * 1024;
/** Bytes that may be under way at a time. A single call may have more. */
const LANE_BYTES = 8 * 1024 * 1024;
/** A call's time limit grows by one limit per this many bytes. */
const PATIENT_BYTES = 4 * 1024 * 1024;

/** The lane of one connection, for large calls. */
export class Lane {
  #free: number;
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = [];

  readonly #limitMs: number;
  readonly #waitMs: number | undefined;
  readonly #laneBytes: number;

  /**
   * @param limitMs time limit of a small call: {@link withinLimit}
   * @param waitMs time limit of the wait for room; absent: no limit
   * @param laneBytes bytes that may be under way at a time
   */
  constructor(limitMs: number, waitMs?: number, laneBytes = LANE_BYTES) {
    this.#limitMs = limitMs;
    this.#waitMs = waitMs;
    this.#laneBytes = laneBytes;

    this.#free = laneBytes;
  }

  /**
   * Sends a call when there is room. The call's time limit starts at the sending. Its room is free again when Redis has answered, even late.
   *
   * @param bytes bytes that the call sends or reads
   * @throws the errors of `withinLimit`
   */
  async call<T>(bytes: number, send: () => Promise<T>): Promise<T> {
    if (bytes < LARGE_BYTES) return withinLimit(send(), this.#limitMs);
    const share = Math.min(bytes, this.#laneBytes);
    await this.#enter(share);
    const sent = send();
    const leave = (): void => {
      this.#free += share;
      this.#admit();
    };
    sent.then(leave, leave);
    return withinLimit(sent, this.#limitMs * (1 + bytes / PATIENT_BYTES));
  }

  #enter(bytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const place = {
        bytes,
        enter: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      if (this.#waitMs !== undefined) {
        timer = setTimeout(() => {
          this.#waiting.splice(this.#waiting.indexOf(place), 1);
          reject(new ServiceError('unavailable', 'The run store did not answer in time.'));
        }, this.#waitMs);
      }
      this.#waiting.push(place);
      this.#admit();
    });
  }

  #admit(): void {
    for (let first = this.#waiting[0]; first && first.bytes <= this.#free; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#free -= first.bytes;
      first.enter();
    }
  }
}
