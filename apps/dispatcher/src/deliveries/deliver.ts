// Contract 4: the journey of a delivery: begin → keep the body, get a slot at the receiver → sign → attempt → record → next job.
import { type DueDelivery, ServiceError } from '@inference-proxy/contracts';
import { UnsealError } from '@inference-proxy/crypto';
import type { ExchangeLimits, GuardedAgent, WebhookUrls } from '@inference-proxy/egress';
import { type AccountLog, parseTraceparent } from '@inference-proxy/platform';
import { retry } from '@inference-proxy/retry';
import type {
  AttemptRecord,
  DeliveryQueue,
  DeliveryStore,
  DeliveryTask,
  NextStep,
  ParkReason,
} from '@inference-proxy/store';
import type { Permit, Permits } from '../fairness/permits.ts';
import { AttemptAccount, type AttemptAccountParts } from '../operations/attempt-account.ts';
import { attempt, type ErrorClass, shownRecord } from './attempt.ts';
import { deliveryHeaders, type Signers, shownHeaders } from './headers.ts';
import { longestRoundMs, type RetrySchedule } from './retry-schedule.ts';
import { circuitSignal, type Verdict, verdict } from './verdict.ts';

const RECORD_AGAIN_MS = 250;
/** A freed slot wakes a parked delivery. After this time the store hands the delivery out even if no slot woke it. */
const PARKED_MS = 3_600_000;

/** The journey's log, for example a pino logger. No line holds a secret, a body, or more of a URL than its host. */
export interface DeliveryLogger {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface DeliverOptions {
  /** The records of deliveries, which decide about each attempt. Every method rejects while Redis is away. */
  readonly store: Pick<DeliveryStore, 'begin' | 'body' | 'record' | 'park'>;
  /** Queues the job of the next attempt. */
  readonly queue: Pick<DeliveryQueue, 'add'>;
  readonly permits: Pick<Permits, 'request'>;
  readonly agent: GuardedAgent;
  readonly urls: WebhookUrls;
  readonly signers: Signers;
  readonly schedule: RetrySchedule;
  readonly limits: ExchangeLimits;
  /** Lease of an attempt, from its begin to its record. No other dispatcher begins the attempt during the lease. */
  readonly leaseMs: number;
  /** Milliseconds during which the record of a made attempt is retried while Redis is away; part of the lease. */
  readonly recordMs: number;
  readonly version: string;
  readonly log: DeliveryLogger;
  /** Logs one line for each attempt. */
  readonly lines: AccountLog;
  /** Counts and traces attempts. */
  readonly accounts: AttemptAccountParts;
}

/** The result of a job. `busy` and `unrecorded`: the store hands the delivery out again after the lease expires. */
export type Delivered = 'recorded' | 'superseded' | 'unrecorded' | 'parked' | 'settled' | 'busy' | 'early' | 'gone';

export class Deliver {
  readonly #options: DeliverOptions;

  constructor(options: DeliverOptions) {
    this.#options = options;
  }

  /**
   * Makes the due attempt.
   *
   * @param given the permit of a woken delivery
   * @throws errors of the store before the attempt is made; after the attempt, nothing
   */
  async deliver(due: DueDelivery, given?: Permit): Promise<Delivered> {
    const { store, schedule, permits, leaseMs } = this.#options;
    const begun = await store.begin(due, leaseMs).catch((error: unknown) => {
      given?.abandon();
      throw error;
    });
    if (begun.state !== 'begun') {
      await given?.release('none');
      if (begun.state === 'early') await this.#add(due, begun.inMs);
      return begun.state;
    }
    const { task } = begun;
    const url = new URL(task.url);
    const host = hostAndPort(url);
    const overdue = task.ageMs > longestRoundMs(schedule);
    // The store makes and keeps the body during the wait for the permit.
    const kept = store.body(task);
    kept.catch(() => {});
    const permit = given ?? (await permits.request(due, host, overdue ? 'forced' : task.parked ? 'parked' : 'normal'));
    if (typeof permit === 'string') return this.#park(due, task, host, permit);
    let made: AttemptRecord | undefined;
    try {
      const body = await kept;
      if (!body) return 'superseded';
      made = await this.#attempt(task, url, body);
    } finally {
      // Not awaited: this command and the record's command go to Redis together.
      void permit.release(made ? circuitSignal(made) : 'none');
    }
    return this.#settle(due, task, host, made, overdue);
  }

  /** Parks the delivery. No place and no socket waits for a receiver with taken slots or an open circuit. */
  async #park(due: DueDelivery, task: DeliveryTask, host: string, reason: ParkReason): Promise<Delivered> {
    const { store, log, accounts } = this.#options;
    const answer = await store.park(task, reason, Math.round(PARKED_MS * (1 + Math.random())));
    accounts.metrics.parked(reason);
    log.debug({ ...named(task), host, reason }, 'parked');
    // The delivery was woken before it was parked. The woken attempt found this lease and did nothing.
    if (answer === 'again') await this.#add(due, 0);
    return 'parked';
  }

  /** Signs and sends the attempt. An error that prevents the POST is also an outcome of the attempt. */
  async #attempt(task: DeliveryTask, url: URL, body: Buffer): Promise<AttemptRecord> {
    const account = new AttemptAccount(this.#options.accounts, task, url);
    try {
      const made = await this.#send(task, url, body, account.traceparent);
      account.made(made);
      return made;
    } catch (error) {
      account.unmade();
      throw error;
    }
  }

  async #send(task: DeliveryTask, url: URL, body: Buffer, traceparent: string | undefined): Promise<AttemptRecord> {
    const { agent, signers, limits, urls, version } = this.#options;
    try {
      // The gateway checked this URL with the settings of that time, and they may have changed.
      urls.judge(task.url);
      const headers = await deliveryHeaders(task, body, signers, { now: Date.now(), version, traceparent });
      const made = await attempt(agent, url, headers, body, limits);
      return { ...made, headers: shownHeaders(headers) };
    } catch (error) {
      if (error instanceof ServiceError) return unsent('blocked', error);
      if (error instanceof UnsealError && error.altered) {
        this.#options.log.error(
          { ...named(task), host: hostAndPort(url), err: error },
          'the record of a delivery was changed in Redis; nothing is sent, and the delivery fails',
        );
        return unsent('altered', error);
      }
      if (error instanceof UnsealError) return unsent('unsigned', error);
      throw error;
    }
  }

  /** Judges the attempt and records it with the time of the next attempt. Queues and logs only after the record. */
  async #settle(
    due: DueDelivery,
    task: DeliveryTask,
    host: string,
    made: AttemptRecord,
    overdue: boolean,
  ): Promise<Delivered> {
    const { schedule, accounts } = this.#options;
    const history = { attempt: task.attempt - task.earlier, refusals: task.refusals, overdue };
    const judged = verdict(made, history, schedule, Math.random());
    const next: NextStep = judged.state === 'failed' ? { state: 'failed' } : judged;
    const recorded = await this.#record(task, made, next);
    if (recorded === 'recorded' && judged.state === 'pending')
      await this.#add({ ...due, attempt: due.attempt + 1 }, judged.delayMs);
    this.#logAttempt(task, host, made, judged, recorded);
    if (recorded === 'recorded') accounts.metrics.judged(judged);
    return recorded;
  }

  /** Records the attempt and retries within `recordMs` while Redis is away. A record that is sent twice counts once. */
  async #record(
    task: DeliveryTask,
    made: AttemptRecord,
    next: NextStep,
  ): Promise<'recorded' | 'superseded' | 'unrecorded'> {
    const { store, recordMs, log } = this.#options;
    const until = performance.now() + recordMs;
    const failed = (err: unknown): void => {
      if (performance.now() + RECORD_AGAIN_MS > until) throw err;
    };
    try {
      const record = () => store.record(task, shownRecord(made, task.url), next);
      return await retry(record, { firstMs: RECORD_AGAIN_MS, failed });
    } catch (err) {
      log.error({ ...named(task), err }, 'an attempt was not recorded in time; it is repeated after its lease expires');
      return 'unrecorded';
    }
  }

  async #add(due: DueDelivery, delayMs: number): Promise<void> {
    try {
      await this.#options.queue.add(due, delayMs);
    } catch (err) {
      const { runId, project } = due;
      this.#options.log.warn(
        { runId, project, err },
        'no job was queued for the next attempt; the store hands the delivery out when it is overdue',
      );
    }
  }

  #logAttempt(task: DeliveryTask, host: string, made: AttemptRecord, judged: Verdict, recorded: Delivered): void {
    const { status, errorClass, message, address, durationMs, retryAfterS } = made;
    const traceId = parseTraceparent(task.traceparent)?.traceId;
    const fields = {
      ...named(task),
      traceId,
      host,
      address,
      status,
      errorClass,
      message,
      durationMs,
      retryAfterS,
      parked: task.parked,
      judged,
      recorded,
    };
    const { lines } = this.#options;
    if (judged.state === 'failed') lines.warn(fields, 'given up');
    else lines.info(fields, judged.state === 'delivered' ? 'delivered' : 'to be tried again');
  }
}

const named = ({ project, runId, deliveryId, attempt }: DeliveryTask) => ({ project, runId, deliveryId, attempt });

/** Returns the receiver's name for limits and circuits. A default port and its number give the same name. */
const hostAndPort = ({ hostname, port, protocol }: URL): string =>
  `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;

const unsent = (errorClass: ErrorClass, error: Error): AttemptRecord => ({
  at: Date.now(),
  durationMs: 0,
  errorClass,
  message: error.message,
});
