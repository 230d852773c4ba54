// Simulates a gateway with its callers: they call, read live or later, pause, disconnect, cancel, and return after an error as clients do.
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { MaintainingGateway } from '../journeys/real-store.ts';
import { Shares } from '../maintenance/shares.ts';
import { newRunId } from '../runs/accept.ts';
import { attendScript } from '../runs/attend.ts';
import type { GatewayStore } from '../runs/gateway-store.ts';
import type { RunReader } from '../runs/reader.ts';
import type { ScriptName } from '../script-files.ts';
import { unpackReply } from '../scripts.ts';
import type { StoreTimings } from '../timings.ts';
import type { History, KnownRun, Reading } from './history.ts';
import type { Behaviour, Plan, Step } from './schedule.ts';

type Call = Extract<Step, { type: 'call' }>;

export class SimulatedGateway {
  readonly store: GatewayStore;
  dead = false;
  readonly #reading = new Set<Reading>();
  /** Time at which the last call was sent that renewed this gateway's lease. */
  #renewedAt: number | undefined;

  readonly #project: string;
  readonly #history: History;
  readonly #another: () => SimulatedGateway;

  constructor(
    readonly id: string,
    project: string,
    history: History,
    /** Returns the gateway that a caller uses after its gateway has died. */
    another: () => SimulatedGateway,
    parts: { commands: Redis; subscriber: Redis; deliveries: DeliveryQueue; timings: StoreTimings },
  ) {
    this.#project = project;
    this.#history = history;
    this.#another = another;

    const logger = { warn: () => {}, error: () => {} };
    this.store = new MaintainingGateway({ ...parts, gatewayId: id, logger, shares: new Shares() });
    this.store.start();
  }

  /** Kills the gateway as SIGKILL would. Its readers are gone. */
  kill(): void {
    this.dead = true;
    this.store.stop();
    for (const reading of this.#reading) {
      reading.orphaned = true;
      this.leave(reading);
    }
  }

  /** Records the time since the gateway's lease was last renewed, if this execution renews the lease. */
  executed(name: ScriptName, reply: Buffer, sentAt: number): void {
    if (name !== 'accept' && (name !== 'attend' || attendScript.decode(unpackReply(reply)) === 'stale')) return;
    if (this.#renewedAt !== undefined && this.#reading.size > 0)
      this.#history.silent(this.id, performance.now() - this.#renewedAt);
    this.#renewedAt = sentAt;
  }

  /** Calls a function as a caller, and follows the run if the kind of the call does. */
  async call({ kind, key, absentMs = 0, plan, behaviour }: Call, runId = newRunId()): Promise<void> {
    const known = this.#history.runs.get(runId) ?? this.#history.add(runId, plan, key);
    const live = kind === 'items' || kind === 'outcome';
    known.plainly = live;
    known.promised = !live || key !== undefined || absentMs > 0;
    known.windowed = kind === 'items' && !known.promised;
    const freed = new Set([...this.#history.runs.values()].filter(({ neverStarts }) => neverStarts));
    const { accepted, reader } = this.store.acceptor.accept(
      {
        project: this.#project,
        runId,
        app: 'app',
        fn: 'run',
        params: Buffer.from(JSON.stringify(plan)),
        promised: known.promised,
        paced: known.windowed,
        // No retention ends in a round: a run that is forgotten between two reads of `#gatherFinals` would look like lost items.
        keepMs: 3_600_000,
        ...(live && { absentMs }),
        ...(kind === 'webhook' && { webhook: { url: 'http://receiver/' } }),
        ...(known.key !== undefined && {
          idempotency: { key: known.key, fingerprint: known.fingerprint as string },
        }),
        queueLimit: 1000,
        queueTimeoutMs: 60_000,
      },
      live ? wanted(kind, plan) : 'none',
    );
    const following = reader && this.follow(known, kind === 'items' ? 'items' : 'outcome', 0, behaviour, reader);
    try {
      const answer = await accepted;
      known.answer = answer.state === 'accepted' || answer.state === 'cancelled' ? answer.state : 'other';
      if (answer.state !== 'accepted' && following) following.left = true;
      if (answer.state === 'joined') {
        const other = this.#joined(known, answer.runId, freed);
        if (other && live) this.follow(other, kind, 0, behaviour);
      } else if (answer.state === 'conflict') this.#conflicted(known);
    } catch (error) {
      if (!unavailable(error)) this.#history.violated(`accept: ${String(error)}`);
      known.answer = 'unanswered';
      known.mayBeCancelled = true;
      if (following) following.left = true;
    }
  }

  /** Withdraws a run before its accept executes, as a gateway does after an unanswered accept. */
  async cancelFirst(plan: Plan): Promise<void> {
    const runId = newRunId();
    const known = this.#history.add(runId, plan);
    known.mayBeCancelled = true;
    await this.store.withdraw(this.#project, runId).then(
      () => {
        known.neverStarts = true;
      },
      (error: unknown) => {
        // A killed gateway gets no answer. In this case the run may start.
        if (!unavailable(error)) this.#history.violated(`withdraw: ${String(error)}`);
      },
    );
    if (known.neverStarts) await this.call({ type: 'call', gateway: 0, kind: 'promised', plan, behaviour: {} }, runId);
  }

  async cancel(known: KnownRun): Promise<void> {
    known.mayBeCancelled = true;
    const before = known.answer;
    try {
      const found = await this.store.cancel(this.#project, known.runId);
      if (found === 'queued' && known.plan.how !== 'crash') known.neverStarts = true;
      // An unknown run is a 404 for the client. A 404 promises nothing about an accept that Redis receives after a cut connection.
      if (found === 'unknown' && before === 'accepted') known.missed = true;
      // A refused call leaves no run, so nothing can start under its id.
      if (found === 'unknown' && (before === 'other' || before === 'cancelled')) known.neverStarts = true;
    } catch (error) {
      if (!unavailable(error)) this.#history.violated(`cancel: ${String(error)}`);
    }
  }

  async look(runId: RunId): Promise<void> {
    try {
      const record = await this.store.lookUp(this.#project, runId);
      if (record?.outcome) this.#history.saw(runId, `look at ${this.id}`, record.outcome);
    } catch (error) {
      if (!unavailable(error)) this.#history.violated(`look: ${String(error)}`);
    }
  }

  /** Reads a run until its outcome, over errors and gateways, unless this caller leaves. */
  follow(known: KnownRun, mode: 'items' | 'outcome', from: number, behaviour: Behaviour, first?: RunReader): Reading {
    const reading: Reading = {
      ...{
        runId: known.runId,
        mode,
        from,
        texts: [],
        served: false,
        gone: false,
        missed: false,
        left: false,
        orphaned: false,
        settled: false,
      },
    };
    this.#history.readings.push(reading);
    void this.#read(known, reading, behaviour, first).finally(() => {
      reading.settled = true;
    });
    return reading;
  }

  /** Disconnects the caller. The run may end with this. */
  leave(reading: Reading): void {
    reading.left = true;
    this.#history.run(reading.runId).mayBeCancelled = true;
  }

  async #read(known: KnownRun, reading: Reading, behaviour: Behaviour, first?: RunReader): Promise<void> {
    let at: SimulatedGateway = this;
    let reader = first;
    while (!reading.left && !reading.outcome && !reading.gone) {
      if (at.dead) at = this.#another();
      const cursor = reading.from + reading.texts.length;
      reader ??= at.store.read(this.#project, known.runId, wanted(reading.mode, known.plan), cursor);
      at.#reading.add(reading);
      known.readAt.add(at.id);
      try {
        await (reading.mode === 'items'
          ? at.#items(reader, reading, behaviour, known.plan.head && cursor === 0)
          : at.#outcome(reader, reading, behaviour));
      } catch (error) {
        reading.served = false;
        this.#failed(known, reading, error);
        // This reader is over. If it was the run's last reader, the run may be cancelled, even if the caller returns.
        known.mayBeCancelled = true;
        await sleep(5);
      }
      if (!at.dead) reader.close();
      at.#reading.delete(reading);
      reader = undefined;
    }
    if (reading.outcome) this.#history.saw(known.runId, `reader at ${at.id}`, reading.outcome);
  }

  #items(reader: RunReader, reading: Reading, behaviour: Behaviour, headed: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let awaitsHead = headed;
      let headOf: string | undefined;
      let paused = behaviour.pauseAfter === undefined;
      const watching = setInterval(() => {
        if (reading.left) finish();
      }, 10);
      const finish = (error?: unknown): void => {
        clearInterval(watching);
        subscription?.unsubscribe();
        error === undefined ? resolve() : reject(error);
      };
      const leaves = (): boolean => behaviour.leaveAfter !== undefined && reading.texts.length >= behaviour.leaveAfter;
      const subscribe = () =>
        reader.events().subscribe({
          next: (event) => {
            if (event.type === 'head') {
              if (!awaitsHead)
                this.#history.violated(`a reader of ${reading.runId} got a head twice, or without a request`);
              awaitsHead = false;
              headOf = event.head.headers[0]?.[1];
            }
            if (event.type === 'outcome') {
              reading.outcome = event.outcome;
              if (awaitsHead && event.outcome.state === 'succeeded')
                this.#history.violated(`a reader of ${reading.runId} got its end without a head`);
            }
            if (event.type !== 'items') return;
            const expected = reading.from + reading.texts.length + 1;
            const lines = event.batch.blob.toString().split('\n');
            if (event.batch.first !== expected || lines.length !== event.batch.count)
              this.#history.violated(
                `a reader of ${reading.runId} at ${this.id} got ${lines.length} items from ${event.batch.first}, not ${expected}`,
              );
            if (awaitsHead) this.#history.violated(`a reader of ${reading.runId} got an item before the head`);
            if (headOf !== undefined && lines[0]?.startsWith(`${headOf}#`) === false)
              this.#history.violated(`a reader of ${reading.runId} got the head of ${headOf} and ${lines[0]}`);
            reading.texts.push(...lines);
            reading.served = true;
            if (leaves()) {
              this.leave(reading);
              finish();
            } else if (!paused && reading.texts.length >= (behaviour.pauseAfter ?? 0)) {
              paused = true;
              subscription?.unsubscribe();
              setTimeout(() => {
                if (!reading.left) subscription = subscribe();
              }, 20);
            }
          },
          error: finish,
          complete: () => finish(),
        });
      let subscription: ReturnType<typeof subscribe> | undefined;
      if (behaviour.leaveAfter === 0) {
        this.leave(reading);
        finish();
      } else subscription = subscribe();
    });
  }

  #outcome(reader: RunReader, reading: Reading, behaviour: Behaviour): Promise<void> {
    return new Promise((resolve, reject) => {
      const watching = setInterval(() => {
        if (!reading.left) return;
        clearInterval(watching);
        resolve();
      }, 10);
      if (behaviour.leaveAfter !== undefined) setTimeout(() => this.leave(reading), behaviour.leaveAfter * 10);
      reader
        .outcome()
        .then((outcome) => {
          reading.outcome = outcome;
        })
        .then(resolve, reject)
        .finally(() => clearInterval(watching));
    });
  }

  #failed(known: KnownRun, reading: Reading, error: unknown): void {
    const code = error instanceof ServiceError ? error.code : undefined;
    if (code === 'unavailable') return;
    const readings = this.#history.readings.filter(({ runId }) => runId === known.runId);
    if (code === 'items_gone') {
      reading.gone = true;
      if (readings.length === 1)
        this.#history.violated(`the stream of ${known.runId} did not wait for its only reader`);
      return;
    }
    if (code === 'not_found') reading.missed = true;
    else this.#history.violated(`reading ${known.runId}: ${String(error)}`);
    this.leave(reading);
  }

  /** @param freed runs that had freed their keys before the call */
  #joined(known: KnownRun, runId: RunId, freed: ReadonlySet<KnownRun>): KnownRun | undefined {
    const other = this.#history.runs.get(runId);
    if (!other || other.key !== known.key || other.fingerprint !== known.fingerprint)
      this.#history.violated(`${known.runId} was joined to ${runId}, which has another key or request`);
    else if (freed.has(other)) this.#history.violated(`${known.runId} was joined to ${runId}, which never started`);
    return other;
  }

  #conflicted({ runId, key, fingerprint }: KnownRun): void {
    const others = [...this.#history.runs.values()].filter((other) => other.key === key);
    if (!others.some((other) => other.fingerprint !== fingerprint))
      this.#history.violated(`${runId} was refused for a different request with its key, and there was none`);
  }
}

const wanted = (mode: 'items' | 'outcome', plan: Plan): 'items' | 'outcome' | 'answer' =>
  mode === 'items' && plan.head ? 'answer' : mode;

const unavailable = (error: unknown): boolean => error instanceof ServiceError && error.code === 'unavailable';
