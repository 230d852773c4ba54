// How a service stops: named phases in sequence, a deadline each. Nest runs a module's hooks in parallel, where a Redis that quits is gone before others have drained.
import type { Logger } from './logging.ts';

/**
 * In order, with their deadlines in milliseconds.
 *
 * - `unready`: readiness says no, so that balancers look elsewhere
 * - `intake`: nothing new is taken
 * - `drain`: what is under way ends
 * - `queues`: job queues and pools are closed
 * - `flush`: logs, metrics, the framework
 * - `redis`: the connections, last, because all others need them
 */
export const phases = { unready: 1000, intake: 2000, drain: 15_000, queues: 5000, flush: 2000, redis: 2000 } as const;

export type Phase = keyof typeof phases;

/** What a service is told of its stop: `SHUTDOWN_DELAY_S`, `SHUTDOWN_GRACE_S`. */
export interface StopTimes {
  /** Seconds in which it goes on as before, so that balancers notice that it is not ready any more. */
  readonly delayS: number;
  /** Seconds that are left to what is under way then. */
  readonly graceS: number;
}

/** For what is past its grace to be told so, and for the word to leave. */
const TELLING_MS = 5000;

/** Each phase's deadline, milliseconds. */
export const deadlinesFor = ({ delayS, graceS }: StopTimes): Record<Phase, number> => ({
  ...phases,
  unready: phases.unready + delayS * 1000,
  drain: graceS * 1000 + TELLING_MS,
});

/** The longest that a stop may take, milliseconds: whoever stops a service kills it no sooner. */
export const longestStopMs = (times: StopTimes): number =>
  Object.values(deadlinesFor(times)).reduce((sum, limit) => sum + limit, 0);

/** Stops one thing. The signal fires at the phase's deadline: what is not done by then is left. */
export type Stop = (signal: AbortSignal) => unknown;

interface Step {
  readonly name: string;
  readonly stop: Stop;
}

export interface ShutdownOptions {
  readonly logger: Logger;
  /** Milliseconds, in place of the defaults. */
  readonly deadlines?: Partial<Record<Phase, number>>;
  /** Ends the process; a test gives its own. */
  readonly exit?: (code: number) => void;
}

export class Shutdown {
  readonly #logger: Logger;
  readonly #deadlines: Record<Phase, number>;
  readonly #exit: (code: number) => void;
  readonly #steps = new Map<Phase, Step[]>();
  /** The stop under way or done: a second request gets the same one. */
  #stopping: Promise<boolean> | undefined;

  constructor({ logger, deadlines = {}, exit = (code) => process.exit(code) }: ShutdownOptions) {
    this.#logger = logger;
    this.#deadlines = { ...phases, ...deadlines };
    this.#exit = exit;
  }

  /** Whether a stop was asked for. */
  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Adds a step; those of one phase run side by side. Added while stopping, it runs if its phase is still to come. */
  add(phase: Phase, name: string, stop: Stop): void {
    this.#steps.set(phase, [...(this.#steps.get(phase) ?? []), { name, stop }]);
  }

  /** Runs all phases once, however often it is asked. True when every step ended in time and without an error. */
  stop(reason: string): Promise<boolean> {
    this.#stopping ??= this.#run(reason);
    return this.#stopping;
  }

  /** Stops, then ends the process: with `code`, or 1 where a step failed. */
  async stopAndExit(reason: string, code = 0): Promise<void> {
    const clean = await this.stop(reason);
    this.#exit(clean ? code : 1);
  }

  /** Stops on SIGTERM and SIGINT; a further one changes nothing. Returns a function that takes the listeners off. */
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
          this.#logger.warn({ phase, step: name, limitMs: limit }, 'not stopped in time; going on');
        } catch (err) {
          this.#logger.error({ phase, step: name, err }, 'could not be stopped; going on');
        }
        return false;
      }),
    );
    clearTimeout(timer);
    return outcomes.every(Boolean);
  }
}
