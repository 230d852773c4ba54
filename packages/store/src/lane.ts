// Large values go to Redis, and come from it, one after the other: together they would hold up everything else on their connection, leases among
// it, for as long as they take, and each that is not answered in time would be asked for again on top.
import { ServiceError } from '@inference-proxy/contracts';
import { withinLimit } from './time-limit.ts';

/** Calls with less go at once. */
const LARGE_BYTES = 256 * 1024;
/** What may be under way at a time; more only by a single call. */
const LANE_BYTES = 8 * 1024 * 1024;
/** Bytes for which a call is given its time limit once more. */
const PATIENT_BYTES = 4 * 1024 * 1024;

/** One connection's lane for calls that carry much. */
export class Lane {
  private free: number;
  private readonly waiting: { readonly room: number; readonly enter: () => void }[] = [];

  /**
   * @param limitMs for a small call: {@link withinLimit}
   * @param waitMs for room; absent: as long as it takes
   * @param laneBytes what may be under way at a time
   */
  constructor(
    private readonly limitMs: number,
    private readonly waitMs?: number,
    private readonly laneBytes = LANE_BYTES,
  ) {
    this.free = laneBytes;
  }

  /**
   * Sends when there is room. Its time counts from then on, and its room is given back when Redis has answered, however late.
   *
   * @param bytes that it carries, or asks for
   * @throws as `withinLimit`
   */
  async call<T>(bytes: number, send: () => Promise<T>): Promise<T> {
    if (bytes < LARGE_BYTES) return withinLimit(send(), this.limitMs);
    const room = Math.min(bytes, this.laneBytes);
    await this.enter(room);
    const sent = send();
    const leave = (): void => {
      this.free += room;
      this.admit();
    };
    sent.then(leave, leave);
    return withinLimit(sent, this.limitMs * (1 + bytes / PATIENT_BYTES));
  }

  private enter(room: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const place = {
        room,
        enter: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      if (this.waitMs !== undefined) {
        timer = setTimeout(() => {
          this.waiting.splice(this.waiting.indexOf(place), 1);
          reject(new ServiceError('unavailable', 'The run store did not answer in time.'));
        }, this.waitMs);
      }
      this.waiting.push(place);
      this.admit();
    });
  }

  private admit(): void {
    for (let first = this.waiting[0]; first && first.room <= this.free; first = this.waiting[0]) {
      this.waiting.shift();
      this.free -= first.room;
      first.enter();
    }
  }
}
