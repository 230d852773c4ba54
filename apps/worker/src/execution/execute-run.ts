// Contract 5: executes an attempt of a run: start, run, end, handover of the outcome.
import { type ErrorFields, type ItemKind, type Outcome, ServiceError } from '@inference-proxy/contracts';
import { overShare, type StoreLogger, type TakenRun, type WorkerStore } from '@inference-proxy/store';
import type { StartedRun } from '../deployments/offered-version.ts';
import type { AppVersions } from '../deployments/versions.ts';
import { RunAccount, type RunAccountParts, type RunNames } from '../operations/run-account.ts';
import type { PrintedLines } from '../runtimes/printed-lines.ts';
import type { RunEnd } from '../runtimes/runtime.ts';
import { type Ended, endRun, withGap } from './end-run.ts';
import type { OpenAttempt } from './open-attempts.ts';
import type { RunLogWriter, RunLogWriters } from './run-log-writer.ts';
import { RunWriter, type WriterListener } from './run-writer.ts';

type OpenOutcome = Omit<Outcome, 'endedAt'>;

interface RunLogger extends StoreLogger {
  info(fields: object, text: string): void;
}

/** The errors that `retry_on_crash` retries: the function's process died, or its server did not answer. */
const CRASHES: ReadonlySet<string> = new Set(['replica_crashed', 'upstream_unavailable']);

const NOTHING = Buffer.alloc(0);

const notRun = (error: ErrorFields): RunEnd => ({ state: 'failed', items: 0, streamed: false, runTimeMs: 0, error });

/** The reason why the function's own end does not count. Set once: the first reason stays. */
type Overruled =
  | { readonly as: 'lost' }
  | { readonly as: 'gap'; readonly last: number }
  | { readonly as: 'error'; readonly error: ErrorFields };

/** An attempt between its take and its end. */
export class Execution implements OpenAttempt, WriterListener {
  readonly project: string;
  readonly runId: string;
  readonly token: string;
  readonly #writer: RunWriter;
  /** Created at the first printed line, because most functions print nothing. */
  #log: RunLogWriter | undefined;
  readonly #account: RunAccount;
  readonly #givingUp = new AbortController();
  /** Undefined until a version of the app has the run. */
  #started: StartedRun | undefined;
  /** Acknowledgements arrive in three ways and repeat each other. The function's process gets each number once. */
  #credited = 0;
  #overruled: Overruled | undefined;
  readonly #functionEnded = Promise.withResolvers<RunEnd>();

  readonly #run: RunNames;
  /** Dropped when the run starts. */
  #params: Buffer | undefined;

  readonly #app: AppVersions | undefined;
  readonly #store: Pick<WorkerStore, 'append' | 'head' | 'end'>;
  readonly #logger: RunLogger;
  readonly #logs: RunLogWriters;

  constructor(
    { params, ...run }: TakenRun,
    app: AppVersions | undefined,
    store: Pick<WorkerStore, 'append' | 'head' | 'end'>,
    logger: RunLogger,
    accounts: RunAccountParts,
    logs: RunLogWriters,
  ) {
    this.#app = app;
    this.#store = store;
    this.#logger = logger;
    this.#logs = logs;

    this.#params = params;
    this.#run = run;
    ({ project: this.project, runId: this.runId, token: this.token } = run);
    this.#writer = new RunWriter(store, this, this);
    this.#account = new RunAccount(accounts, run);
  }

  /** Executes the run to its end. Never rejects. */
  async execute(): Promise<Ended> {
    try {
      this.#start();
      const end = await this.#functionEnded.promise;
      await this.#writer.finish();
      // The log of an ended run must be complete for its readers.
      if (this.#log) await this.#log.finish();
      const outcome = this.#outcomeOf(end);
      const ended = outcome ? await this.#handOver(outcome) : 'lost';
      this.#logEnd(
        end,
        outcome && ended === 'refused' ? { ...outcome, state: 'failed', error: overShare } : outcome,
        ended,
      );
      return ended;
    } catch (error) {
      this.#logger.error({ err: error, ...this.#names() }, 'the run could not be ended; its lease expires instead');
      this.#stopWriting();
      this.#started?.running.cancel('cancelled');
      const writer = this.#writer;
      const internal = { code: 'internal', message: 'The run could not be ended.' } as const;
      this.#account.end({
        version: this.#started?.version,
        ended: 'given_up',
        state: 'failed',
        items: writer.written,
        bytes: writer.bytes,
        runTimeMs: 0,
        error: internal,
      });
      return 'given_up';
    }
  }

  /** Interrupts the function, because this worker stops. */
  interrupt(): void {
    this.#started?.running.cancel('unavailable');
  }

  /** Stops waiting for the store, because the process is about to end. */
  giveUp(): void {
    this.#givingUp.abort();
    this.#stopWriting();
    this.#overruled ??= { as: 'lost' };
  }

  readTo(upTo: number): void {
    if (!this.#run.paced || upTo <= this.#credited) return;
    this.#credited = upTo;
    this.#started?.running.credit(upTo);
  }

  stored(upTo: number): void {
    // A paced run gets its credit from its readers.
    if (!this.#run.paced) this.#started?.running.credit(upTo);
  }

  cancelled(): void {
    this.#started?.running.cancel('cancelled');
  }

  lost(): void {
    this.#stopWriting();
    this.#overrule({ as: 'lost' });
  }

  refused(): void {
    this.#overrule({ as: 'error', error: overShare });
  }

  gap(last: number): void {
    this.#overrule({ as: 'gap', last });
  }

  full(): void {
    this.#started?.running.pause();
  }

  drained(): void {
    this.#started?.running.resume();
  }

  #start(): void {
    const app = this.#app;
    const run = this.#run;
    const params = this.#params ?? NOTHING;
    this.#params = undefined;
    try {
      if (!app) throw new ServiceError('unavailable', 'This worker no longer serves the app.');
      const { traceparent } = this.#account;
      this.#started = app.run(
        {
          runId: run.runId,
          fn: run.fn,
          params,
          paced: run.paced,
          ...(traceparent !== undefined && { traceparent }),
        },
        {
          head: (head) => {
            if (!this.#overruled) this.#writer.head(head);
          },
          items: ({ count, kind, blob }) => this.#items(count, kind, blob),
          log: (lines) => this.#print(lines),
          ended: (end) => this.#functionEnded.resolve(end),
        },
        run.version,
      );
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#functionEnded.resolve(notRun({ code: error.code, message: error.message }));
    }
  }

  #print(lines: PrintedLines): void {
    if (this.#overruled?.as === 'lost') return;
    const { runId, project, app, fn } = this.#run;
    this.#log ??= this.#logs.of(this, { runId, project, app, fn });
    this.#log.add(lines);
  }

  #stopWriting(): void {
    this.#writer.stop();
    this.#log?.stop();
  }

  #items(count: number, kind: ItemKind, blob: Buffer): void {
    if (this.#overruled) return;
    this.#account.items(count);
    // Every run without pacing is stored whole, so its output is limited (Contract 5, "Retention and limits"). The harness checks first.
    // A paced run is limited only by its time limit.
    const limit = this.#run.paced ? Number.POSITIVE_INFINITY : (this.#started?.limits.maxOutputBytes ?? 0);
    if (this.#writer.bytes + blob.length <= limit) this.#writer.push(kind, count, blob);
    else
      this.#overrule({
        as: 'error',
        error: { code: 'output_too_large', message: `The output is over ${limit} bytes.` },
      });
  }

  #overrule(by: Overruled): void {
    if (this.#overruled) return;
    this.#overruled = by;
    this.#started?.running.cancel('cancelled');
  }

  /** Returns the outcome to store, or undefined if another attempt holds the run. */
  #outcomeOf(end: RunEnd): OpenOutcome | undefined {
    const { state, streamed, result, error, statusCode, head } = end;
    const outcome: OpenOutcome = {
      state,
      items: this.#writer.written,
      streamed,
      runTimeMs: String(Math.round(end.runTimeMs * 100) / 100),
      ...(result && { result }),
      ...(error && { error }),
      ...(statusCode !== undefined && { statusCode }),
      ...(head && { head }),
    };
    switch (this.#overruled?.as) {
      case 'lost':
        return undefined;
      case 'gap':
        return withGap(outcome, this.#overruled.last);
      case 'error':
        return {
          state: 'failed',
          items: outcome.items,
          streamed,
          runTimeMs: outcome.runTimeMs,
          error: this.#overruled.error,
        };
      default:
        return outcome;
    }
  }

  /** Ends the run in the store. The store itself hands over a due webhook. */
  #handOver(outcome: OpenOutcome): Promise<Ended> {
    const started = this.#started;
    const neverBegan = started === undefined;
    const mayRetry = CRASHES.has(outcome.error?.code ?? '') && started?.limits.retryOnCrash === true;
    // A new version may have replaced the version of the take before the run started.
    const swapped = started && started.version !== this.#run.version && { version: started.version };
    return endRun(this.#store, this, { outcome, retry: neverBegan || mayRetry, ...swapped }, this.#givingUp.signal);
  }

  #names(): object {
    const { project, app, fn, runId, attempt } = this.#run;
    return { runId, project, app, fn, attempt, version: this.#started?.version };
  }

  #logEnd(end: RunEnd, outcome: OpenOutcome | undefined, ended: Ended): void {
    const { state, items, error } = outcome ?? { ...end, items: this.#writer.written };
    const writer = this.#writer;
    const version = this.#started?.version;
    this.#account.end({ version, ended, state, items, bytes: writer.bytes, runTimeMs: end.runTimeMs, error });
  }
}
