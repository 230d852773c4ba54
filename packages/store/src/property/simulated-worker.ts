// Simulates a worker whose functions are plans: it takes runs, writes their items and ends them, repeats unanswered calls, and can be frozen or
// killed.
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnswerHead, type AppDescription, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { overShare } from '../runs/codec.ts';
import type { StoreTimings } from '../timings.ts';
import type { End } from '../workers/end.ts';
import type { TakenRun } from '../workers/take.ts';
import { WorkerStore } from '../workers/worker-store.ts';
import { type History, patiently } from './history.ts';
import type { Plan } from './schedule.ts';

const APP = 'app';
const description: AppDescription = {
  app: APP,
  kind: 'functions',
  state: 'ready',
  version: '1',
  functions: [],
  queueLimit: 1000,
  queueTimeoutMs: 60_000,
  preformatted: true,
};
const SLOTS = 3;
/** Bytes of a window: about three small appends. */
const WINDOW = 250;
/** Too large for publishing one append. */
const LARGE = 300_000;

/** The outcome of a run whose items exceed the share. */
const REFUSED = { state: 'failed', items: 0, streamed: false, error: overShare } as const;

interface Held {
  readonly run: TakenRun;
  cancelled: boolean;
  /** The run's items exceed the project's share. */
  refused: boolean;
}

export class SimulatedWorker {
  readonly store: WorkerStore;
  readonly #held = new Map<RunId, Held>();
  readonly #renewing: NodeJS.Timeout;
  #frozen: { promise: Promise<void>; thaw: () => void } | undefined;
  #dead = false;
  #taking = false;
  #again = false;
  #heardAt = performance.now();

  readonly #project: string;
  readonly #history: History;

  constructor(
    readonly id: string,
    project: string,
    history: History,
    parts: { commands: Redis; subscriber: Redis; deliveries: DeliveryQueue; timings: StoreTimings },
  ) {
    this.#project = project;
    this.#history = history;

    this.store = new WorkerStore({
      ...parts,
      workerId: id,
      windowBytes: WINDOW,
      logger: { warn: () => {}, error: () => {} },
    });
    this.store.onWake = () => void this.#pump();
    this.store.onCancel = ({ runId, token }) => {
      const held = this.#held.get(runId);
      if (held?.run.token === token) held.cancelled = true;
    };
    this.#renewing = setInterval(() => void this.#renew(), parts.timings.renewMs);
  }

  async serve(): Promise<void> {
    await this.#renew();
    await patiently(() => this.store.announce(this.#project, description));
    await this.store.serve(this.#project);
  }

  /** Freezes the worker as SIGSTOP would. A frozen worker sends nothing until `thaw`. */
  freeze(): void {
    let thaw = (): void => {};
    const promise = new Promise<void>((resolve) => {
      thaw = resolve;
    });
    this.#frozen ??= { promise, thaw };
  }

  thaw(): void {
    if (this.#frozen) this.#history.silent(this.id, performance.now() - this.#heardAt);
    this.#frozen?.thaw();
    this.#frozen = undefined;
  }

  /** Kills the worker as SIGKILL would. */
  kill(): void {
    this.#dead = true;
    this.thaw();
    clearInterval(this.#renewing);
    this.store.close();
    this.#history.silent(this.id, Number.POSITIVE_INFINITY);
  }

  /** Resolves when the worker is not frozen. @returns false if the worker is dead */
  async #alive(): Promise<boolean> {
    while (this.#frozen && !this.#dead) await this.#frozen.promise;
    return !this.#dead;
  }

  async #renew(): Promise<void> {
    if (this.#frozen || this.#dead) return;
    const sentAt = performance.now();
    const held = [...this.#held.values()];
    try {
      const answers = await this.store.renew(
        this.#project,
        held.map(({ run }) => run),
        [APP],
      );
      this.#heard(sentAt);
      answers.forEach((answer, at) => {
        if (answer.state === 'held' && answer.cancel) (held[at] as Held).cancelled = true;
      });
    } catch (error) {
      this.#expected(error);
    }
  }

  #heard(sentAt: number): void {
    this.#history.silent(this.id, performance.now() - this.#heardAt);
    this.#heardAt = sentAt;
  }

  async #pump(): Promise<void> {
    if (this.#taking) {
      this.#again = true;
      return;
    }
    this.#taking = true;
    do {
      this.#again = false;
      if (!(await this.#alive())) return;
      const free = SLOTS - this.#held.size;
      if (free === 0) break;
      const sentAt = performance.now();
      const { runs, more } = await this.store.take(this.#project, [{ app: APP, slots: free }]);
      this.#history.silent(this.id, performance.now() - sentAt);
      if (!(await this.#alive())) return;
      for (const run of runs) void this.#execute(run);
      this.#again ||= more;
    } while (this.#again);
    this.#taking = false;
  }

  async #execute(run: TakenRun): Promise<void> {
    const known = this.#history.run(run.runId);
    known.starts.push(run.token);
    const held = { run, cancelled: false, refused: false };
    this.#held.set(run.runId, held);
    const plan = JSON.parse(run.params.toString()) as Plan;
    try {
      await this.#call(held, plan);
    } catch (error) {
      this.#expected(error);
    }
    this.#held.delete(run.runId);
    void this.#pump();
  }

  async #call(held: Held, plan: Plan): Promise<void> {
    const { run } = held;
    if (plan.head && !(await this.#begin(held))) return;
    const texts: string[] = [];
    const fast: Promise<unknown>[] = [];
    for (const size of plan.items) {
      if (!(await this.#alive()) || held.cancelled || held.refused) break;
      const first = texts.length + 1;
      for (let n = first; n < first + size; n++) texts.push(textOf(run.token, n, plan));
      const writing = this.#write(held, texts, first);
      if (plan.hurry) fast.push(writing.catch((error: unknown) => this.#expected(error)));
      else if (!(await writing)) return;
      await sleep(texts.length % 3);
    }
    while (plan.how === 'stay' && !held.cancelled && !held.refused && !this.#dead && this.#held.get(run.runId) === held)
      await sleep(3);
    const crashed = plan.how === 'crash' && run.attempt === 1;
    await this.#end(held, texts, {
      runId: run.runId,
      token: run.token,
      ...(crashed && { retry: true }),
      outcome: { items: crashed ? 0 : texts.length, runTimeMs: '1.5', ...this.#result(held, plan, crashed, texts) },
    });
    await Promise.all(fast);
  }

  #result(held: Held, plan: Plan, crashed: boolean, texts: string[]) {
    const { token } = held.run;
    const failed = (code: 'cancelled' | 'replica_crashed' | 'function_error', raised?: Plan) => {
      const message = raised ? messageOf(token, raised) : token;
      return { state: code === 'cancelled' ? code : 'failed', streamed: false, error: { code, message } } as const;
    };
    if (held.cancelled) return failed('cancelled');
    if (crashed) return failed('replica_crashed');
    if (plan.how === 'raise') return failed('function_error', plan);
    const streamed = texts.length > 0;
    const head = plan.head && { head: headOf(token) };
    return {
      state: 'succeeded',
      streamed,
      ...(!streamed && { result: Buffer.from(resultOf(token, plan)) }),
      ...head,
    } as const;
  }

  /** Writes the head. @returns false if the attempt is lost */
  async #begin(held: Held): Promise<boolean> {
    const { runId, token } = held.run;
    const answer = await this.#answered(() => this.store.head(this.#project, { runId, token, head: headOf(token) }));
    if (answer === 'full') held.refused = true;
    return answer === 'ok' || answer === 'full';
  }

  /** Appends the items from number `first` on, and resends missing items. @returns false if the attempt is lost */
  async #write(held: Held, texts: readonly string[], first: number, upTo = texts.length): Promise<boolean> {
    const { runId, token } = held.run;
    let from = first;
    while (await this.#alive()) {
      const blob = Buffer.from(texts.slice(from - 1, upTo).join('\n'));
      const batch = { first: from, count: upTo - from + 1, kind: 's', blob } as const;
      const answer = await this.#answered(() => this.store.append(this.#project, { runId, token, batch }));
      if (!answer || answer.state === 'lost') return false;
      if (answer.state === 'full') {
        held.refused = true;
        return true;
      }
      if (answer.state === 'ok') {
        if (answer.cancel) held.cancelled = true;
        return true;
      }
      if (answer.last >= upTo) return true;
      from = answer.last + 1;
    }
    return false;
  }

  async #end(held: Held, texts: readonly string[], end: End): Promise<void> {
    while (await this.#alive()) {
      const { runTimeMs } = end.outcome;
      const refused: End = { ...end, outcome: { ...REFUSED, runTimeMs }, retry: false };
      const answer = await this.#answered(() => this.store.end(this.#project, held.refused ? refused : end));
      if (answer?.state !== 'behind') return;
      if (!(await this.#write(held, texts, answer.last + 1))) return;
    }
  }

  /** Repeats the call until the store answers. */
  async #answered<T>(ask: () => Promise<T>): Promise<T | undefined> {
    while (await this.#alive()) {
      try {
        return await ask();
      } catch (error) {
        this.#expected(error);
        await sleep(10);
      }
    }
    return undefined;
  }

  #expected(error: unknown): void {
    if (error instanceof ServiceError && error.code === 'unavailable') return;
    this.#history.violated(`worker ${this.id}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}

/** Returns a head that names its attempt. */
export const headOf = (token: string): AnswerHead => ({ status: 200, headers: [['x-attempt', token]], form: 'chunks' });

/** Returns a result that names its attempt. A large result has its room reserved first. */
export const resultOf = (token: string, plan: Plan): string => `"${token}${plan.large ? 'x'.repeat(LARGE) : ''}"`;

/** Returns the message of an exception. A large message is stored without a reservation. */
export const messageOf = (token: string, plan: Plan): string => `${token}${plan.large ? 'x'.repeat(LARGE) : ''}`;

/** Returns an item that names its attempt. */
export const textOf = (token: string, n: number, plan: Plan): string =>
  `${token}#${n}${plan.large && n === 1 ? 'x'.repeat(LARGE) : ''}`;
