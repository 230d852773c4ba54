// docs/architecture.md, "A webhook": begin → body kept, a slot at the receiver → sign → attempt → record → next job. Reads in that order.
import { setTimeout as pause } from 'node:timers/promises';
import { type DueDelivery, ServiceError } from '@inference-proxy/contracts';
import { type SealedBox, UnsealError } from '@inference-proxy/crypto';
import type { ExchangeLimits, GuardedAgent, WebhookUrls } from '@inference-proxy/egress';
import { type AccountLog, parseTraceparent } from '@inference-proxy/platform';
import type { HostOutcome, Slot } from '@inference-proxy/store';
import type { HostLimits, Turn } from '../fairness/host-limits.ts';
import { hostOutcome } from '../fairness/host-outcome.ts';
import { AttemptAccount, type AttemptAccountParts } from '../operations/attempt-account.ts';
import { attempt, type ErrorClass } from './attempt.ts';
import { deliveryHeaders } from './headers.ts';
import type {
  AttemptRecord,
  DeliveryRecords,
  DeliveryTask,
  HostSlots,
  NextJobs,
  NextStep,
  ParkReason,
} from './records.ts';
import { longestRoundMs, type Schedule } from './schedule.ts';
import { shownRecord } from './shown-record.ts';
import { type Verdict, verdict } from './verdict.ts';

const RECORD_AGAIN_MS = 250;
/** A parked delivery is woken by its receiver's slots; this long after, the store hands it out even if they were forgotten. */
const PARKED_MS = 3_600_000;

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
  readonly slots: HostSlots;
  readonly agent: GuardedAgent;
  readonly urls: WebhookUrls;
  readonly box: SealedBox;
  /** This process' own turns at quick receivers: they spare most parkings. */
  readonly hosts: HostLimits;
  readonly schedule: Schedule;
  readonly limits: ExchangeLimits;
  /** Of an attempt: from its beginning to its record nobody else begins one. */
  readonly leaseMs: number;
  /** How long a made attempt's record is tried again while Redis is away, milliseconds: part of its lease. */
  readonly recordMs: number;
  readonly version: string;
  readonly log: DeliveryLog;
  /** One line for each attempt. */
  readonly lines: AccountLog;
  /** Where attempts are counted and traced. */
  readonly accounts: AttemptAccountParts;
}

/** A parked delivery whose slot came: its turn counts from then on. */
export interface Woken {
  readonly slot: Slot;
  readonly turn: Turn;
}

/** What became of a job. `busy` and `unrecorded`: the store hands the delivery out again when the lease has run out. */
export type Delivered = 'recorded' | 'superseded' | 'unrecorded' | 'parked' | 'settled' | 'busy' | 'early' | 'gone';

export class Deliver {
  readonly #options: DeliverOptions;

  constructor(options: DeliverOptions) {
    this.#options = options;
  }

  /**
   * Makes the attempt that is due.
   *
   * @param woken its slot and its turn, where it was parked until now
   * @throws what the store throws before the attempt is made; afterwards only what the receiver did counts
   */
  async deliver(due: DueDelivery, woken?: Woken): Promise<Delivered> {
    const { records, schedule, hosts, leaseMs } = this.#options;
    const begun = await records.begin(due, leaseMs).catch((error: unknown) => {
      // Its slot lapses.
      woken?.turn.end();
      throw error;
    });
    if (begun.state !== 'begun') {
      if (woken) await this.#handOn(woken.turn, woken.slot, undefined);
      if (begun.state === 'early') await this.#add(due, begun.inMs);
      return begun.state;
    }
    const { task } = begun;
    const url = new URL(task.url);
    const host = hostAndPort(url);
    const overdue = task.ageMs > longestRoundMs(schedule);
    // Made and kept while it waits for its turn and its slot.
    const kept = records.body(task);
    kept.catch(() => {});
    const turn = woken ? woken.turn : await hosts.enter(task.project, host);
    let slot = woken ? woken.slot : turn?.slot;
    let made: AttemptRecord | undefined;
    try {
      if (!slot) {
        const how = overdue ? 'forced' : task.parked ? 'parked' : 'normal';
        const entered = await this.#options.slots.enter(due, host, how, turn?.share ?? 0);
        if (entered.state === 'parked') return await this.#park(due, task, host, entered.reason);
        slot = entered.slot;
      }
      const body = await kept;
      if (!body) return 'superseded';
      made = await this.#attempt(task, url, body);
    } finally {
      // Not waited for: it goes out with the record.
      void this.#handOn(turn, slot, made);
    }
    return this.#settle(due, task, host, made, overdue);
  }

  /** Judges and records in one step, so that the record says when the next attempt is; only then anything follows. */
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
    this.#tell(task, host, made, judged, recorded);
    if (recorded === 'recorded') accounts.metrics.judged(judged);
    return recorded;
  }

  /** Gives the attempt back: neither a place nor a socket waits for a receiver whose slots are taken or whose circuit is open. */
  async #park(due: DueDelivery, task: DeliveryTask, host: string, reason: ParkReason): Promise<Delivered> {
    const { records, log, accounts } = this.#options;
    const answer = await records.park(task, reason, Math.round(PARKED_MS * (1 + Math.random())));
    accounts.metrics.parked(reason);
    log.debug({ ...named(task), host, reason }, 'parked');
    // Whoever had its slot meanwhile found it still in our hands.
    if (answer === 'again') await this.#add(due, 0);
    return 'parked';
  }

  /** The signatures, the POST. What keeps it from being sent is an attempt's outcome too. */
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
    const { agent, box, limits, urls, version } = this.#options;
    try {
      // The gateway judged this URL by the settings of its time.
      urls.judge(task.url);
      const headers = deliveryHeaders(task, body, box, { now: Date.now(), version, traceparent });
      return await attempt(agent, url, headers, body, limits);
    } catch (error) {
      if (error instanceof ServiceError) return unsent('blocked', error);
      if (error instanceof UnsealError && error.altered) {
        this.#options.log.error(
          { ...named(task), host: hostAndPort(url), err: error },
          'the record of a delivery was changed in Redis: nothing is sent, and the delivery has failed',
        );
        return unsent('altered', error);
      }
      if (error instanceof UnsealError) return unsent('unsigned', error);
      throw error;
    }
  }

  /**
   * The slot goes to who waits for a turn here, for what the store learns nothing from needs no word to it; or back to the store, which may wake a
   * parked delivery with it.
   */
  async #handOn(turn: Turn | undefined, slot: Slot | undefined, made: AttemptRecord | undefined): Promise<void> {
    const outcome = made ? hostOutcome(made) : 'none';
    // Where there was a failure of late, the circuit says how many may be open; a slot of then cannot be passed on.
    if (slot && outcome !== 'none') turn?.shown(outcome === 'good' && slot.passUntil > 0);
    const kept = slot && outcome === 'good' && performance.now() < slot.passUntil ? slot : undefined;
    if (kept && turn?.end(kept)) return;
    const ceded = slot ? await this.#leave(slot, outcome, turn?.share ?? 0) : false;
    if (ceded) turn?.cede();
    else turn?.end();
  }

  /** Gives a slot back. Where Redis is away it lapses by itself. @returns whether a parked delivery was woken in its place */
  async #leave(slot: Slot, outcome: HostOutcome, share: number): Promise<boolean> {
    try {
      return await this.#options.slots.leave(slot, outcome, share);
    } catch (err) {
      this.#options.log.debug({ runId: slot.runId, err }, 'a slot was not given back; it lapses');
      return false;
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
        return await records.record(task, shownRecord(made, task.url), next);
      } catch (err) {
        if (performance.now() + RECORD_AGAIN_MS > until) {
          log.error({ ...named(task), err }, 'an attempt could not be recorded; it will be repeated');
          return 'unrecorded';
        }
        await pause(RECORD_AGAIN_MS);
      }
    }
  }

  async #add(due: DueDelivery, delayMs: number): Promise<void> {
    try {
      await this.#options.queue.add(due, delayMs);
    } catch (err) {
      const { runId, project } = due;
      this.#options.log.warn(
        { runId, project, err },
        'the next attempt has no job; the store hands it out when it is overdue',
      );
    }
  }

  #tell(task: DeliveryTask, host: string, made: AttemptRecord, judged: Verdict, recorded: Delivered): void {
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

/** A receiver's name for caps and circuits: two ways to write one port are one receiver. */
const hostAndPort = ({ hostname, port, protocol }: URL): string =>
  `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;

const unsent = (errorClass: ErrorClass, error: Error): AttemptRecord => ({
  at: Date.now(),
  durationMs: 0,
  errorClass,
  message: error.message,
});
