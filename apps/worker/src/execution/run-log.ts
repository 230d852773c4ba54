// Contract 5, `/logs`: what a run prints, on its way to the run store, in order and numbered, the newest where there is too much of it.
import { ServiceError } from '@inference-proxy/contracts';
import type { LogPart, WorkerStore } from '@inference-proxy/store';
import { AppLog, LineRate } from '../runtimes/app-log.ts';
import { LINE_COST, type PrintedLines } from '../runtimes/printed-lines.ts';
import type { LogLine } from '../runtimes/runtime.ts';
import type { HeldAttempt } from './run-writer.ts';

/** A run that prints now and then is written for this seldom… */
const WRITE_EVERY_MS = 20;
/** …and one that prints a lot writes so much a millisecond, so that it does not hold Redis: more than its log keeps for long anyway. */
const BYTES_PER_MS = 512;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2_000;
/** How long an ended run may wait for its lines: its end is worth more than they are. */
const LAST_WORDS_MS = 5_000;

/** The store keeps and drops parts as wholes: a part is a small share of a run's log. */
const PART_COST = 16 * 1024;
/** In the worker's own log, of one run and of all together. */
const SHOWN_PER_SECOND = 500;
const ALL_SHOWN_PER_SECOND = 2_000;

interface RunLogLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** What the logs of a worker's runs share. */
export interface RunLogsOptions {
  readonly store: Pick<WorkerStore, 'log'>;
  /** `RUN_LOG_MAX_BYTES`: of what waits for the store the newest so much is kept, for each run. */
  readonly maxBytes: number;
  readonly logger: RunLogLogger;
}

export class RunLogs {
  readonly #options: RunLogsOptions;
  readonly #rate = new LineRate(ALL_SHOWN_PER_SECOND);

  constructor(options: RunLogsOptions) {
    this.#options = options;
  }

  /** The log of one attempt. @param names those of the run, in the worker's own log */
  of(attempt: HeldAttempt, names: object): RunLog {
    const shown = new AppLog(this.#options.logger, names, [new LineRate(SHOWN_PER_SECOND), this.#rate]);
    return new RunLog({ ...this.#options, attempt, shown });
  }
}

interface RunLogOptions extends RunLogsOptions {
  readonly attempt: HeldAttempt;
  /** The worker's own log, where the lines are shown too. */
  readonly shown: AppLog;
}

/** What is written at once. */
interface Batch {
  readonly parts: readonly LogPart[];
  readonly cost: number;
}

/** One attempt's lines. One write at a time; whoever prints never waits for it. */
export class RunLog {
  readonly #options: RunLogOptions;
  #waiting: { readonly first: number; readonly printed: PrintedLines }[] = [];
  #cost = 0;
  /** The number of the next line that is printed; one that is left out keeps its number. */
  #next = 1;
  /** The number of the last line that was handed to the store. */
  #told = 0;
  #writing: Promise<void> | undefined;
  /** Cuts a pause short. */
  #go: (() => void) | undefined;
  #finishBy = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(options: RunLogOptions) {
    this.#options = options;
  }

  add(printed: PrintedLines): void {
    if (this.#stopped) return;
    this.#options.shown.lines(printed);
    this.#next += printed.cut;
    this.#waiting.push({ first: this.#next, printed });
    this.#next += printed.count;
    this.#cost += printed.cost;
    for (let oldest = this.#waiting[0]; oldest; oldest = this.#waiting[0]) {
      if (this.#cost - oldest.printed.cost < this.#options.maxBytes) break;
      this.#waiting.shift();
      this.#cost -= oldest.printed.cost;
    }
    this.#writing ??= this.#write();
  }

  /** The run has ended: resolves when its lines are in the store, or can be waited for no longer. */
  async finish(): Promise<void> {
    this.#options.shown.tellLeftOut();
    this.#finishBy = performance.now() + LAST_WORDS_MS;
    this.#go?.();
    await this.#writing;
  }

  /** Writes nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#waiting = [];
    this.#cost = 0;
    this.#go?.();
  }

  async #write(): Promise<void> {
    await Promise.resolve(); // all that one read of the pipe brought
    for (let batch = this.#batch(); batch; batch = this.#batch()) {
      if (!(await this.#tell(batch.parts))) this.stop();
      await this.#pause(Math.max(WRITE_EVERY_MS, batch.cost / BYTES_PER_MS));
    }
    this.#writing = undefined;
  }

  /** All that waits, in parts. */
  #batch(): Batch | undefined {
    if (this.#waiting.length === 0) return undefined;
    const { runId, token } = this.#options.attempt;
    const parts: LogPart[] = [];
    let lines: LogLine[] = [];
    let room = 0;
    for (const { first, printed } of this.#waiting) {
      let number = first;
      for (const line of printed.lines()) {
        const dropped = number - this.#told - 1;
        if (room <= 0 || dropped > 0) {
          lines = [];
          room = PART_COST;
          parts.push({ runId, token, number, dropped, lines });
        }
        lines.push(line);
        room -= line.text.length + LINE_COST;
        this.#told = number++;
      }
    }
    const cost = this.#cost;
    this.#waiting = [];
    this.#cost = 0;
    return { parts, cost };
  }

  /** Until the store has them; a repeat is harmless, since they are numbered. False: it is not to be told more. */
  async #tell(parts: readonly LogPart[]): Promise<boolean> {
    const { store, attempt, logger } = this.#options;
    const { project, runId } = attempt;
    for (let wait = FIRST_RETRY_MS; !this.#stopped; wait = Math.min(wait * 2, LAST_RETRY_MS)) {
      try {
        const answers = await Promise.all(parts.map((part) => store.log(project, part)));
        return !answers.includes('lost');
      } catch (err) {
        // A store that is full says so at once; the run goes on, and its log has a hole.
        if (err instanceof ServiceError && err.code === 'overloaded') return this.#leaveOut(parts);
        if (performance.now() > this.#finishBy) {
          const lines = this.#next - (parts[0]?.number ?? 0);
          logger.warn({ err, project, runId, lines }, 'the last lines of a run are not in its log');
          return false;
        }
        await this.#pause(wait, true);
      }
    }
    return false;
  }

  /** The next line's part counts these as dropped. */
  #leaveOut([first]: readonly LogPart[]): true {
    this.#told = (first?.number ?? 1) - 1 - (first?.dropped ?? 0);
    return true;
  }

  /** @param always also once the run has ended */
  async #pause(ms: number, always = false): Promise<void> {
    if (this.#stopped || (!always && this.#finishBy !== Number.POSITIVE_INFINITY)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#go = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#go = undefined;
  }
}
