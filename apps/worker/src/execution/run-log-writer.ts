// Contract 5, `/logs`: sends a run's printed lines to the run store, numbered and in order. If there are too many, the newest are kept.
import { ServiceError } from '@inference-proxy/contracts';
import { backOffMs } from '@inference-proxy/retry';
import type { LogPart, WorkerStore } from '@inference-proxy/store';
import { AppLog, LineRate } from '../runtimes/app-log.ts';
import { LINE_COST, type LogLine, type PrintedLines } from '../runtimes/printed-lines.ts';
import type { AttemptKey } from './run-writer.ts';

/** The shortest time between two writes of a run that prints now and then. */
const WRITE_EVERY_MS = 20;
/** The fastest write rate of a run that prints a lot, so that it does not block Redis. The log keeps little more than this anyway. */
const BYTES_PER_MS = 512;
const RETRY = { firstMs: 50, lastMs: 2_000 };
/** The longest time that an ended run waits for its lines. Its end is more important than its lines. */
const LAST_LINES_MS = 5_000;

/** The store keeps or drops whole parts, so a part is a small share of a run's log. */
const PART_COST = 16 * 1024;
/** The most lines in the worker's own log: of a run, and of all runs together. */
const SHOWN_PER_SECOND = 500;
const ALL_SHOWN_PER_SECOND = 2_000;

interface RunLogLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** The options that all logs of a worker's runs share. */
export interface RunLogsOptions {
  readonly store: Pick<WorkerStore, 'log'>;
  /** `RUN_LOG_MAX_BYTES`: the bytes of waiting lines that are kept for each run; older lines are dropped. */
  readonly maxBytes: number;
  readonly logger: RunLogLogger;
}

export class RunLogWriters {
  readonly #options: RunLogsOptions;
  readonly #rate = new LineRate(ALL_SHOWN_PER_SECOND);

  constructor(options: RunLogsOptions) {
    this.#options = options;
  }

  /** Returns the log of an attempt. @param names fields of the run for the worker's own log */
  of(attempt: AttemptKey, names: object): RunLogWriter {
    const shown = new AppLog(this.#options.logger, names, [new LineRate(SHOWN_PER_SECOND), this.#rate]);
    return new RunLogWriter({ ...this.#options, attempt, shown });
  }
}

interface RunLogOptions extends RunLogsOptions {
  readonly attempt: AttemptKey;
  /** The worker's own log, which also shows the lines. */
  readonly shown: AppLog;
}

/** The parts of a single write. */
interface Batch {
  readonly parts: readonly LogPart[];
  readonly cost: number;
}

/** Writes the lines of an attempt, with at most a single write open. The function never waits for a write. */
export class RunLogWriter {
  readonly #options: RunLogOptions;
  #waiting: { readonly first: number; readonly printed: PrintedLines }[] = [];
  #cost = 0;
  /** The number of the next printed line. A dropped line keeps its number. */
  #next = 1;
  /** The number of the last line that was passed to the store. */
  #passed = 0;
  #writing: Promise<void> | undefined;
  /** Ends a pause early. */
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

  /** Ends the log, because the run has ended. Resolves when the lines are in the store or the wait is over. */
  async finish(): Promise<void> {
    this.#options.shown.logLeftOut();
    this.#finishBy = performance.now() + LAST_LINES_MS;
    this.#go?.();
    await this.#writing;
  }

  /** Drops all lines and writes nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#waiting = [];
    this.#cost = 0;
    this.#go?.();
  }

  async #write(): Promise<void> {
    await Promise.resolve(); // collects all lines of one read of the pipe
    for (let batch = this.#batch(); batch; batch = this.#batch()) {
      if (!(await this.#send(batch.parts))) this.stop();
      await this.#pause(Math.max(WRITE_EVERY_MS, batch.cost / BYTES_PER_MS));
    }
    this.#writing = undefined;
  }

  /** Returns all waiting lines, in parts. */
  #batch(): Batch | undefined {
    if (this.#waiting.length === 0) return undefined;
    const { runId, token } = this.#options.attempt;
    const parts: LogPart[] = [];
    let lines: LogLine[] = [];
    let room = 0;
    for (const { first, printed } of this.#waiting) {
      let number = first;
      for (const line of printed.lines()) {
        const dropped = number - this.#passed - 1;
        if (room <= 0 || dropped > 0) {
          lines = [];
          room = PART_COST;
          parts.push({ runId, token, number, dropped, lines });
        }
        lines.push(line);
        room -= line.text.length + LINE_COST;
        this.#passed = number++;
      }
    }
    const cost = this.#cost;
    this.#waiting = [];
    this.#cost = 0;
    return { parts, cost };
  }

  /** Repeats a write until the store answers. Lines are numbered, so a repeat is harmless. Returns false if no more lines may be written. */
  async #send(parts: readonly LogPart[]): Promise<boolean> {
    const { store, attempt, logger } = this.#options;
    const { project, runId } = attempt;
    for (let failures = 1; !this.#stopped; failures++) {
      try {
        const answers = await Promise.all(parts.map((part) => store.log(project, part)));
        return !answers.includes('lost');
      } catch (err) {
        // A full store refuses at once. The run continues, and its log has a hole.
        if (err instanceof ServiceError && err.code === 'overloaded') return this.#leaveOut(parts);
        if (performance.now() > this.#finishBy) {
          const lines = this.#next - (parts[0]?.number ?? 0);
          logger.warn({ err, project, runId, lines }, 'the last lines of a run are missing in its log');
          return false;
        }
        await this.#pause(backOffMs(failures, RETRY), true);
      }
    }
    return false;
  }

  /** Drops the parts. The next part counts their lines as dropped. */
  #leaveOut([first]: readonly LogPart[]): true {
    this.#passed = (first?.number ?? 1) - 1 - (first?.dropped ?? 0);
    return true;
  }

  /** Waits. @param always true to wait even after the run has ended */
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
