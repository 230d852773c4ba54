// Notices when this process or Redis stood still. After that, even a healthy service may have lost its lease.
import { timings } from './services.ts';

const LOOK_MS = 10;
/** Part of a lease. A healthy service renews its lease several times in a lease. */
const LONGEST_MS = timings.leaseMs / 3;

export class Standstills {
  /** This process or Redis stood still, or Redis was restarted. */
  disturbed = false;
  /** Last time at which this process stood still for so long that the store may have given every lease a fresh term. */
  at = 0;
  #lookedAt = performance.now();
  readonly #looking = setInterval(() => {
    const now = performance.now();
    if (now - this.#lookedAt > LONGEST_MS) {
      this.disturbed = true;
      this.at = now;
    }
    this.#lookedAt = now;
  }, LOOK_MS);

  close(): void {
    clearInterval(this.#looking);
  }
}
