// Contract 1, "Custom runtimes": whether an app's web server has become ready, is ready now, and is healthy.
import type { ServerAddress } from './address.ts';
import { type ProbeAnswer, probe } from './probe.ts';

/** Times in milliseconds. */
export interface WatchTimes {
  /** Interval of checks while the server is not ready. */
  readonly readyEveryMs: number;
  /** Interval of checks while the server is ready. */
  readonly wellEveryMs: number;
  /** Time limit of an answer. */
  readonly answerMs: number;
}

export const WATCH_TIMES: WatchTimes = { readyEveryMs: 250, wellEveryMs: 10_000, answerMs: 5_000 };

/** A server is unhealthy after this many failed checks in a row. */
const MISSES = 3;

export interface WatchListener {
  /** Called when the server has become ready for requests, or not ready. */
  ready(isReady: boolean): void;
  /** The server is unhealthy. The checks have stopped. @param why the reason, as text */
  unwell(why: string): void;
  /** Whether the server has open runs. A server that handles one request at a time does not answer checks then, but is healthy. */
  busy(): boolean;
}

/** Checks one server until it is stopped. */
export class ServerWatch {
  readonly #times: WatchTimes;
  readonly #paths: { readonly health: string; readonly ready: string };
  readonly #find: () => Promise<ServerAddress | string>;
  readonly #listener: WatchListener;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #isReady = false;
  #wasReady = false;
  #misses = 0;
  #wellAt = 0;
  /** The reason why the last check found the server not ready. */
  why = 'it takes no connections';

  /** @param find returns the address, or a text with the reason why the address is unknown */
  constructor(
    times: WatchTimes,
    paths: { readonly health: string; readonly ready: string },
    find: () => Promise<ServerAddress | string>,
    listener: WatchListener,
  ) {
    this.#times = times;
    this.#paths = paths;
    this.#find = find;
    this.#listener = listener;
    this.#timer = setTimeout(() => void this.#look(), 0);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    const address = await this.#find();
    if (typeof address === 'string') this.why = address;
    else if (!this.#stopped) await this.#check(address);
    if (this.#stopped) return;
    const { readyEveryMs, wellEveryMs } = this.#times;
    this.#timer = setTimeout(() => void this.#look(), this.#isReady ? wellEveryMs : readyEveryMs);
  }

  async #check(address: ServerAddress): Promise<void> {
    const { health, ready } = this.#paths;
    const { answerMs, wellEveryMs } = this.#times;
    const isDue = this.#wasReady && performance.now() - this.#wellAt >= wellEveryMs;
    // A server that is not ready is checked more often. Its health is checked at the slow interval, because misses would add up faster.
    const well = isDue || (!this.#wasReady && health !== ready) ? await probe(address, health, answerMs) : undefined;
    const answer = well && (health === ready || well.state === 'failed') ? well : await probe(address, ready, answerMs);
    if (this.#stopped) return;
    if (isDue && well) this.#judge(well);
    if (!this.#stopped) this.#turn(answer);
  }

  #judge(answer: ProbeAnswer): void {
    this.#wellAt = performance.now();
    if (answer.state === 'ok') this.#misses = 0;
    else if (answer.state === 'failed' || !this.#listener.busy()) this.#misses++;
    if (answer.state === 'ok' || this.#misses < MISSES) return;
    this.stop();
    this.#listener.unwell(answer.why);
  }

  #turn(answer: ProbeAnswer): void {
    if (answer.state === 'silent' && this.#isReady && this.#listener.busy()) return;
    if (answer.state !== 'ok') this.why = answer.why;
    const isReady = answer.state === 'ok';
    if (isReady === this.#isReady) return;
    this.#isReady = isReady;
    if (isReady && !this.#wasReady) {
      this.#wasReady = true;
      this.#wellAt = performance.now();
    }
    this.#listener.ready(isReady);
  }
}
