// Contract 6: stops a service in named phases, in sequence, with a deadline each. Nest would run the hooks of a module in parallel, and Redis
// would close before other parts have drained.
import type { Logger } from './logging.ts';

/**
 * The phases of a stop in order, with their deadlines in milliseconds.
 *
 * - `unready`: the service reports not ready, so that balancers send no more requests
 * - `intake`: the service stops to accept work
 * - `drain`: work in progress ends
 * - `queues`: job queues and pools are closed
 * - `flush`: logs, metrics and the framework are closed
 * - `redis`: the Redis connections are closed last, because all other phases need them
 */
export const phases = { unready: 1000, intake: 2000, drain: 15_000, queues: 5000, flush: 2000, redis: 2000 } as const;

export type Phase = keyof typeof phases;

/** The times of a stop: `SHUTDOWN_DELAY_S` and `SHUTDOWN_GRACE_S`. */
export interface StopTimes {
  /** Seconds for which the service still serves after it reports not ready, so that balancers notice. */
  readonly delayS: number;
  /** Seconds for which work in progress may continue after the delay. */
  readonly graceS: number;
}

/** Time after the grace to report interrupted work to its callers, and to send these reports. */
const TELLING_MS = 5000;

/** Returns each phase's deadline in milliseconds. */
export const deadlinesFor = ({ delayS, graceS }: StopTimes): Record<Phase, number> => ({
  ...phases,
  unready: phases.unready + delayS * 1000,
  drain: graceS * 1000 + TELLING_MS,
});

/** Returns the longest duration of a stop in milliseconds. A supervisor must not kill the service sooner. */
export const longestStopMs = (times: StopTimes): number =>
  Object.values(deadlinesFor(times)).reduce((sum, limit) => sum + limit, 0);

/** Stops one part of the service. The signal fires at the phase's deadline; the shutdown then continues without this part. */
export type Stop = (signal: AbortSignal) => unknown;

interface Step {
  readonly name: string;
  readonly stop: Stop;
}

export interface ShutdownOptions {
  readonly logger: Logger;
  /** Milliseconds that replace the defaults. */
  readonly deadlines?: Partial<Record<Phase, number>>;
  /** Ends the process. Tests replace it. */
  readonly exit?: (code: number) => void;
}

export class Shutdown {
  readonly #logger: Logger;
  readonly #deadlines: Record<Phase, number>;
  readonly #exit: (code: number) => void;
  readonly #steps = new Map<Phase, Step[]>();
  /** The current or finished stop. A second request gets the same promise. */
  #stopping: Promise<boolean> | undefined;

  constructor({ logger, deadlines = {}, exit = (code) => process.exit(code) }: ShutdownOptions) {
    this.#logger = logger;
    this.#deadlines = { ...phases, ...deadlines };
    this.#exit = exit;
  }

  /** Returns whether a stop was requested. */
  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Adds a step. The steps of a phase run in parallel. A step that is added during a stop runs if its phase has not begun. */
  add(phase: Phase, name: string, stop: Stop): void {
    this.#steps.set(phase, [...(this.#steps.get(phase) ?? []), { name, stop }]);
  }

  /** Runs all phases, only once for any number of calls. Returns true if every step ended in time and without an error. */
  stop(reason: string): Promise<boolean> {
    this.#stopping ??= this.#run(reason);
    return this.#stopping;
  }

  /** Stops, then ends the process with `code`, or with 1 if a step failed. */
  async stopAndExit(reason: string, code = 0): Promise<void> {
    const clean = await this.stop(reason);
    this.#exit(clean ? code : 1);
  }

  /** Stops on SIGTERM and SIGINT; later signals change nothing. Returns a function that removes the listeners. */
  listen(): () => void {
    const onSignal = (signal: NodeJS.Signals): void => {
      if (this.stopping) this.#logger.info(`${signal} again: already stopping`);
      else void this.stopAndExit(signal);
    };
    process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
    return () => {
      process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
    };
  }

  async #run(reason: string): Promise<boolean> {
    this.#logger.info(`stopping: ${reason}`);
    let clean = true;
    for (const phase of Object.keys(phases) as Phase[]) {
      const steps = this.#steps.get(phase) ?? [];
      if (steps.length > 0) clean = (await this.#phase(phase, steps)) && clean;
    }
    this.#logger.info('stopped');
    return clean;
  }

  async #phase(phase: Phase, steps: readonly Step[]): Promise<boolean> {
    const limit = this.#deadlines[phase];
    const deadline = new AbortController();
    const late = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => {
      deadline.abort(new Error(`${phase} took over ${limit} ms`));
      late.resolve('late');
    }, limit);
    const outcomes = await Promise.all(
      steps.map(async ({ name, stop }) => {
        try {
          const done = Promise.resolve(stop(deadline.signal)).then(() => 'done' as const);
          if ((await Promise.race([done, late.promise])) === 'done') return true;
          this.#logger.warn({ phase, step: name, limitMs: limit }, 'a step of the stop took too long; continuing');
        } catch (err) {
          this.#logger.error({ phase, step: name, err }, 'a step of the stop failed; continuing');
        }
        return false;
      }),
    );
    clearTimeout(timer);
    return outcomes.every(Boolean);
  }
}
