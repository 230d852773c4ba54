// design.md "Webhook attempt": begin → host limit → body → sign → attempt → record → next job. Reads in that order.
import { setTimeout as pause } from 'node:timers/promises';
import { type DeliveryJob, ServiceError } from '@inference-proxy/contracts';
import { type SealedBox, UnsealError } from '@inference-proxy/crypto';
import { type AddressPolicy, type GuardedAgent, judgeWebhookUrl } from '@inference-proxy/egress';
import type { HostLimits } from '../fairness/host-limits.ts';
import { type AttemptLimits, attempt, type ErrorClass } from './attempt.ts';
import { deliveryHeaders } from './headers.ts';
import type { AttemptRecord, DeliveryRecords, DeliveryTask, NextJobs, NextStep } from './records.ts';
import type { Schedule } from './schedule.ts';
import { type Verdict, verdict } from './verdict.ts';

const RECORD_AGAIN_MS = 250;
/** How soon a parked attempt looks for a slot again, whatever its receiver's pace promises. */
const PARK_MS = { least: 500, most: 30_000 };

/** What the journey tells of: a pino logger fits. Never a secret, a body, or more of a URL than its host. */
export interface DeliveryLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface DeliverOptions {
  readonly records: DeliveryRecords;
  readonly queue: NextJobs;
  readonly agent: GuardedAgent;
  readonly policy: AddressPolicy;
  readonly requireHttps: boolean;
  readonly box: SealedBox;
  readonly hosts: HostLimits;
  readonly schedule: Schedule;
  readonly limits: AttemptLimits;
  /** How long an attempt may wait for a slot of its host, milliseconds: part of its lease. */
  readonly hostWaitMs: number;
  /** How long a made attempt's record is tried again while Redis is away, milliseconds: part of its lease. */
  readonly recordMs: number;
  readonly version: string;
  readonly log: DeliveryLog;
}

/** What became of a job. `busy` and `unrecorded`: the store hands the delivery out again when the lease has run out. */
export type Delivered = 'recorded' | 'superseded' | 'unrecorded' | 'parked' | 'settled' | 'busy' | 'gone';

export class Deliver {
  readonly #options: DeliverOptions;

  constructor(options: DeliverOptions) {
    this.#options = options;
  }

  /** How long an attempt may take from its beginning to its record: nobody else begins one meanwhile. */
  get leaseMs(): number {
    const { hostWaitMs, limits, recordMs } = this.#options;
    return hostWaitMs + limits.headMs + limits.answerMs + recordMs;
  }

  /**
   * Makes the attempt that a job stands for.
   *
   * @throws what the store throws before the attempt is made; afterwards only what the receiver did counts
   */
  async deliver(job: DeliveryJob): Promise<Delivered> {
    const { records, hosts } = this.#options;
    const begun = await records.begin(job, this.leaseMs);
    if (begun.state !== 'begun') return begun.state;
    const { task } = begun;
    const url = new URL(task.url);
    const leave = await hosts.enter(task.project, url.host);
    if (!leave) {
      return this.#park(job, task, url);
    }
    let made: AttemptRecord;
    try {
      made = await this.#attempt(task, url);
    } finally {
      leave();
    }
    const { schedule } = this.#options;
    const judged = verdict(made, task, schedule, Math.random());
    const now = Date.now();
    const next: NextStep =
      judged.state === 'pending'
        ? { state: 'pending', at: now + judged.delayMs, refusals: judged.refusals }
        : { state: judged.state };
    const recorded = await this.#record(task, made, next);
    if (recorded === 'recorded' && judged.state === 'pending')
      await this.#add({ ...job, attempt: job.attempt + 1 }, judged.delayMs);
    this.#tell(task, url, made, judged, recorded);
    return recorded;
  }

  /** Gives the attempt back: neither a place nor a socket waits for a receiver that has its share of attempts open. */
  async #park(job: DeliveryJob, task: DeliveryTask, url: URL): Promise<Delivered> {
    const { records, hosts, log } = this.#options;
    const waitMs = Math.min(Math.max(hosts.expectedWaitMs(task.project, url.host), PARK_MS.least), PARK_MS.most);
    const delayMs = Math.round(waitMs * (0.5 + Math.random()));
    await records.park(task, Date.now() + delayMs);
    await this.#add(job, delayMs);
    log.debug({ ...named(task), host: url.host, delayMs }, 'the receiver has its share of attempts open; parked');
    return 'parked';
  }

  /** The bytes, their signatures, the POST. What keeps it from being sent is an attempt's outcome too. */
  async #attempt(task: DeliveryTask, url: URL): Promise<AttemptRecord> {
    const { records, agent, box, limits, policy, requireHttps, version } = this.#options;
    const body = await records.body(task);
    try {
      // The gateway judged this URL by the settings of its time.
      judgeWebhookUrl(task.url, policy, { requireHttps });
      const headers = deliveryHeaders(task, body, box, Date.now(), version);
      return await attempt(agent, url, headers, body, limits);
    } catch (error) {
      if (error instanceof ServiceError) return unsent('blocked', error);
      if (error instanceof UnsealError) return unsent('unsigned', error);
      throw error;
    }
  }

  /** Records within what is left of the lease; Redis may be away just now. A record is made once, however often it is sent. */
  async #record(
    task: DeliveryTask,
    made: AttemptRecord,
    next: NextStep,
  ): Promise<'recorded' | 'superseded' | 'unrecorded'> {
    const { records, recordMs, log } = this.#options;
    const until = performance.now() + recordMs;
    for (;;) {
      try {
        return await records.record(task, made, next);
      } catch (err) {
        if (performance.now() + RECORD_AGAIN_MS > until) {
          log.error({ ...named(task), err }, 'an attempt could not be recorded; it will be repeated');
          return 'unrecorded';
        }
        await pause(RECORD_AGAIN_MS);
      }
    }
  }

  async #add(job: DeliveryJob, delayMs: number): Promise<void> {
    try {
      await this.#options.queue.add(job, delayMs);
    } catch (err) {
      const { runId, project } = job;
      this.#options.log.warn(
        { runId, project, err },
        'the next attempt has no job; the store hands it out when it is overdue',
      );
    }
  }

  #tell(task: DeliveryTask, url: URL, made: AttemptRecord, judged: Verdict, recorded: Delivered): void {
    const { status, errorClass, message, address, durationMs, retryAfterS } = made;
    const fields = {
      ...named(task),
      host: url.host,
      address,
      status,
      errorClass,
      message,
      durationMs,
      retryAfterS,
      judged,
      recorded,
    };
    if (judged.state === 'failed') this.#options.log.warn(fields, 'given up');
    else this.#options.log.info(fields, judged.state === 'delivered' ? 'delivered' : 'to be tried again');
  }
}

const named = ({ project, runId, deliveryId, attempt }: DeliveryTask) => ({ project, runId, deliveryId, attempt });

const unsent = (errorClass: ErrorClass, error: Error): AttemptRecord => ({
  at: Date.now(),
  durationMs: 0,
  errorClass,
  message: error.message,
});
