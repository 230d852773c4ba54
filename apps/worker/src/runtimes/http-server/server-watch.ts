// runtimes.md, custom runtimes: when an app's own web server is first ready, whether it is ready now, and whether it is well.
import type { ServerAddress } from './address.ts';
import { type ProbeAnswer, probe } from './probe.ts';

/** Times in milliseconds. */
export interface WatchTimes {
  /** Between two looks at a server that is not ready. */
  readonly readyEveryMs: number;
  /** Between two looks at one that is. */
  readonly wellEveryMs: number;
  /** How long an answer may take. */
  readonly answerMs: number;
}

export const WATCH_TIMES: WatchTimes = { readyEveryMs: 250, wellEveryMs: 10_000, answerMs: 5_000 };

/** So many checks in a row that fail, and a server is not well. */
const MISSES = 3;

export interface WatchListener {
  /** It can be given requests, or cannot for now; told when it changes. */
  ready(isReady: boolean): void;
  /** It is not well, and is looked at no more. @param why in words */
  unwell(why: string): void;
  /** Whether it is at work: one that can do one thing at a time does not answer then, and is well. */
  busy(): boolean;
}

/** Looks at one server until it is stopped. */
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
  /** What the last look at a server that is not ready found. */
  why = 'it takes no connections';

  /** @param find returns where it is, or in words why that is unknown */
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
    // Where it is looked at more often because it is not ready, its health is not: that would count misses faster.
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
