// Contract 8: the replicas of one version of an app: their number, their replacement after an end, and the choice of a replica for each run.
import type { ErrorFields, FunctionSpec, StartLine } from '@inference-proxy/contracts';
import type { ReplicaCounts } from '@inference-proxy/store';
import { AppLog, LineRate, withoutTraceback } from './app-log.ts';
import type { PrintedLines } from './printed-lines.ts';
import type { KilledFor, Replica, ReplicaListener } from './replica.ts';
import type { ReplicaState } from './replica-states.ts';
import type { RunListener, RunningRun, RunRequest, Runtime, RuntimeState } from './runtime.ts';
import { startDelayMs } from './start-delay.ts';
import { StartLog } from './start-log.ts';
import { WaitingRun } from './waiting-run.ts';

/** After this many failed starts an app is broken, even without a known reason. */
const STARTS_UNTIL_BROKEN = 5;
/** Replaced processes that still wait for their last runs. Beyond this number, the oldest is killed. */
const RETIRING_LIMIT = 4;
/** The most lines outside of runs that are written to the worker's log. */
const LINES_PER_SECOND = 500;

interface PoolLogger {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

const KILLED_FOR: Readonly<Record<KilledFor, string>> = {
  channel: 'it broke its channel to the worker',
  unhealthy: 'its health checks failed',
};

/** Metrics of an app's processes. */
export interface ProcessCounts {
  /** A process has changed its state. `from` is undefined for the first state, `spawning`. */
  moved(from: ReplicaState | undefined, to: ReplicaState): void;
  started(result: 'ready' | 'failed'): void;
  /** A ready process ended by itself, or its worker ended it because of a fault. */
  crashed(how: 'exit' | 'signal' | 'killed' | KilledFor): void;
}

export interface PoolOptions {
  /** The number of processes. */
  readonly replicas: number;
  /** The time in ms for which a run may wait for a slot. */
  readonly timeoutMs: number;
  /** Finds the program to start. Called at every start. Rejects with a text for the app's author if there is no program. */
  readonly prepare: () => Promise<StartReplica>;
  readonly logger: PoolLogger;
  readonly counts: ProcessCounts;
  /** Called when slots may have become free. */
  readonly freed: () => void;
  /** Fields of every log line. */
  readonly names: object;
}

/** Starts one process. */
export type StartReplica = (listener: ReplicaListener) => Replica;

export class Pool implements Runtime {
  state: RuntimeState = 'starting';
  functions: readonly FunctionSpec[] = [];
  error: ErrorFields | undefined;
  readonly #options: PoolOptions;
  readonly #replicas = new Set<Replica>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #waiting = new Set<WaitingRun>();
  readonly #changeListeners: (() => void)[] = [];
  readonly #replicaListeners: (() => void)[] = [];
  readonly #startLineListeners: ((texts: readonly string[]) => void)[] = [];
  readonly #ended = Promise.withResolvers<void>();
  /** Lines that the app prints outside of its runs. */
  readonly #printed: AppLog;
  readonly #startLog = new StartLog();
  /** The number of replicas that serve, start, or wait for their next start. */
  #wanted = 0;
  #starting = 0;
  #failedStarts = 0;
  #crashes = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#printed = new AppLog(options.logger, options.names, [new LineRate(LINES_PER_SECOND)]);
  }

  get freeSlots(): number {
    let free = -this.#waiting.size;
    for (const replica of this.#replicas) free += replica.freeSlots;
    return Math.max(0, free);
  }

  get replicas(): ReplicaCounts {
    let ready = 0;
    for (const { state } of this.#replicas) if (state === 'ready') ready++;
    return { ready, desired: this.#stopped ? 0 : this.#options.replicas };
  }

  get startLog(): readonly StartLine[] {
    return this.#startLog.lines;
  }

  onChange(listener: () => void): void {
    this.#changeListeners.push(listener);
  }

  onReplicas(listener: () => void): void {
    this.#replicaListeners.push(listener);
  }

  onStartLines(listener: (texts: readonly string[]) => void): void {
    this.#startLineListeners.push(listener);
  }

  start(): void {
    while (this.#wanted < this.#options.replicas) this.#startAfter(0);
  }

  run(request: RunRequest, listener: RunListener): RunningRun {
    const replica = this.#free();
    if (replica) return replica.run(request, listener);
    const run = new WaitingRun(request, listener, this.#options.timeoutMs, () => this.#waiting.delete(run));
    if (this.state === 'broken' && this.error) run.refuse(this.error);
    else if (this.#stopped) run.cancel('unavailable');
    else this.#waiting.add(run);
    return run;
  }

  drain(): Promise<void> {
    return this.#stop('draining', (replica) => replica.drain());
  }

  close(): Promise<void> {
    return this.#stop('closed', (replica) => replica.kill());
  }

  get #stopped(): boolean {
    return this.state === 'draining' || this.state === 'closed';
  }

  async #stop(state: 'draining' | 'closed', end: (replica: Replica) => void): Promise<void> {
    if (this.state !== 'closed') this.#become(state, this.error);
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const run of this.#waiting) run.cancel('unavailable');
    for (const replica of this.#replicas) end(replica);
    this.#endIfEmpty();
    await this.#ended.promise;
    this.#become('closed', this.error);
  }

  #endIfEmpty(): void {
    if (this.#stopped && this.#replicas.size === 0 && this.#starting === 0) this.#ended.resolve();
  }

  /** Returns the replica with the most free slots, if a replica takes runs. */
  #free(): Replica | undefined {
    let best: Replica | undefined;
    for (const replica of this.#replicas) {
      if (replica.freeSlots > (best?.freeSlots ?? 0)) best = replica;
    }
    return best;
  }

  #startAfter(delayMs: number): void {
    this.#wanted++;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#starting++;
      this.#options
        .prepare()
        .then((begin) => this.#spawn(begin))
        .catch((error: Error) => this.#unstartable(error))
        .finally(() => {
          this.#starting--;
          this.#endIfEmpty();
        });
    }, delayMs);
    this.#timers.add(timer);
  }

  #unstartable({ message }: Error): void {
    this.#wanted--;
    this.#failed({ code: 'app_failed_to_start', type: 'NotStarted', message });
    this.#startAgain();
  }

  #spawn(begin: StartReplica): void {
    if (this.#stopped) return;
    let wasReady = false;
    let replaced = false;
    const replace = (): void => {
      if (replaced) return;
      replaced = true;
      this.#wanted--;
      this.#startAgain();
    };
    const { counts } = this.#options;
    this.#startLog.clear();
    const replica = begin({
      moved: (from, to) => {
        counts.moved(from, to);
        if (from === 'ready' || to === 'ready') for (const listener of this.#replicaListeners) listener();
      },
      ready: (functions) => {
        wasReady = true;
        this.#ready(functions, replica);
      },
      failed: (error) => this.#failed(error),
      freed: () => this.#freed(),
      retiring: (why) => {
        this.#log('warn', { pid: replica.pid, why }, 'a process takes no further runs and is being replaced');
        this.#limitRetiring();
        replace();
      },
      log: (lines, runId) => {
        this.#printed.lines(lines, runId === undefined ? {} : { runId });
        if (!wasReady) this.#startLog.add(lines);
        if (this.state === 'starting') this.#printedAtStart(lines);
      },
      exited: ({ code, signal, killed, overMemory, stderr }) => {
        this.#replicas.delete(replica);
        this.#printed.logLeftOut();
        // `failed` has already reported a start that failed.
        if (!this.#stopped && !replaced && wasReady) {
          this.#crashes = replica.proved ? 1 : this.#crashes + 1;
          counts.crashed(killed ? killed : signal === 'SIGKILL' ? 'killed' : signal ? 'signal' : 'exit');
          const how = killed ? `a process was ended: ${KILLED_FOR[killed]}` : 'a process ended by itself';
          const text = overMemory === undefined ? how : 'a process was ended: it exceeded its memory limit';
          this.#log('error', { pid: replica.pid, code, signal, overMemory, stderr }, text);
        }
        // The last lines of a failed start arrive after its error.
        if (!wasReady && this.state === 'broken') this.#report();
        replace();
        this.#endIfEmpty();
      },
    });
    this.#replicas.add(replica);
  }

  #printedAtStart(lines: PrintedLines): void {
    if (this.#startLineListeners.length === 0) return;
    const texts = lines.lines().map(({ text }) => text);
    for (const listener of this.#startLineListeners) listener(texts);
  }

  #startAgain(): void {
    if (!this.#stopped) this.#startAfter(startDelayMs(this.#failedStarts, this.#crashes));
  }

  #ready(functions: readonly FunctionSpec[], replica: Replica): void {
    this.#failedStarts = 0;
    this.#options.counts.started('ready');
    const { pid, contained } = replica;
    this.#log('info', { pid, contained, functions: functions.length }, 'process ready');
    if (this.#stopped) {
      replica.drain();
      return;
    }
    this.functions = functions;
    this.#become('ready', undefined);
    this.#freed();
  }

  /** Marks the app as broken. A known reason counts at once, because the next start would fail too. Retries continue. */
  #failed(error: ErrorFields): void {
    this.#failedStarts++;
    this.#options.counts.started('failed');
    this.#log('error', { error: withoutTraceback(error), starts: this.#failedStarts }, 'a process did not start');
    if (this.#stopped || this.#serves()) return;
    if (error.type === undefined && this.#failedStarts < STARTS_UNTIL_BROKEN) return;
    this.#become('broken', error);
    for (const run of this.#waiting) run.refuse(error);
  }

  #serves(): boolean {
    return this.replicas.ready > 0;
  }

  #freed(): void {
    for (const run of this.#waiting) {
      const replica = this.#free();
      if (!replica) return;
      run.startOn(replica);
    }
    this.#options.freed();
  }

  #limitRetiring(): void {
    const retiring = [...this.#replicas].filter(({ state }) => state === 'retiring');
    if (retiring.length > RETIRING_LIMIT) retiring[0]?.kill();
  }

  #become(state: RuntimeState, error: ErrorFields | undefined): void {
    if (this.state === state && this.error === error) return;
    this.state = state;
    this.error = error;
    this.#report();
  }

  #report(): void {
    for (const listener of this.#changeListeners) listener();
  }

  #log(level: keyof PoolLogger, fields: object, text: string): void {
    this.#options.logger[level]({ ...this.#options.names, ...fields }, text);
  }
}
