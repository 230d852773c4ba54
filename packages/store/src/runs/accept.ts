// Contract 1: accepts calls as runs, by accept.lua. All calls of a tick and project share one script call.
import { randomFillSync } from 'node:crypto';
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { v7 } from 'uuid';
import { bytesIn, Kinds, listIn, numberIn, type ScriptArgument, type ScriptReply } from '../message-pack.ts';
import { runScript, type Script, StoreClock, TickBatch, withinLimit } from '../redis-calls.ts';
import type { StoreTimings } from '../timings.ts';
import { type FollowerMode, packTerms } from './codec.ts';

export interface NewRun {
  readonly project: string;
  readonly runId: RunId;
  readonly app: string;
  readonly fn: string;
  /** A JSON object's text, exactly as the caller sent it. */
  readonly params: Buffer;
  /** The run is promised: a client may fetch its result later. docs/contract.md, "Words", lists the options that promise a run. */
  readonly promised: boolean;
  /** The run advances at the pace of its fastest reader (Contract 3). */
  readonly paced: boolean;
  /** Absent: true. False: a yielded string of whole events is sent as data (`[streaming] preformatted`). */
  readonly preformatted?: boolean;
  /** Retention after the end, ms. */
  readonly keepMs: number;
  /** The secret is sealed. */
  readonly webhook?: { readonly url: string; readonly secret?: string };
  /** The run is cancelled this many ms after its last reader has disconnected. If absent, the run continues. */
  readonly absentMs?: number;
  /** Two hashes: `key` of project, app, function and key; `fingerprint` of the request. */
  readonly idempotency?: { readonly key: string; readonly fingerprint: string };
  readonly queueLimit: number;
  readonly queueTimeoutMs: number;
  /** The run's W3C trace context. A valid value contains no space. */
  readonly traceparent?: string;
}

export type Accepted =
  | { readonly state: 'accepted' | 'conflict' | 'cancelled' }
  | { readonly state: 'joined'; readonly runId: RunId }
  /** The app's queue is full, or the run store is full of runs that must be kept. Nothing was accepted. */
  | { readonly state: 'overloaded'; readonly reason: 'queue' | 'store'; readonly retryAfterMs: number };

/** Time after which a refused call may be retried. A queue moves within a second. The store gets room when a retention ends. */
const RETRY_AFTER_MS = { queue: 1_000, store: 5_000 } as const;

/** Renewals of a lease during its term. */
const RENEWALS = 15;

/** A run, and the mode in which the gateway follows the run (`-`: the gateway follows nothing). */
interface AcceptRequest {
  readonly run: NewRun;
  readonly live: FollowerMode | '-';
}

export class Acceptor {
  readonly #clock = new StoreClock();
  readonly #batch: TickBatch<AcceptRequest, Accepted>;
  /** Per project: time of the last accept that renewed the gateway's lease. */
  readonly #renewed = new Map<string, number>();

  readonly #redis: Redis;
  readonly #gatewayId: string;
  readonly #timings: StoreTimings;
  readonly #prepare: (project: string) => Promise<void>;
  readonly #limitOf: (project: string) => number | undefined;

  /**
   * @param prepare confirms what a project's first accept needs
   * @param limitOf bytes that the project's runs may take; undefined while the project has far fewer
   */
  constructor(
    redis: Redis,
    gatewayId: string,
    timings: StoreTimings,
    prepare: (project: string) => Promise<void>,
    limitOf: (project: string) => number | undefined,
  ) {
    this.#redis = redis;
    this.#gatewayId = gatewayId;
    this.#timings = timings;
    this.#prepare = prepare;
    this.#limitOf = limitOf;

    this.#batch = new TickBatch(
      (project, items) => this.#send(project, items),
      ({ run }) => run.params.length,
    );
  }

  /** @throws ServiceError `unavailable` if no answer came in time: the run may exist. `overloaded` if memory is short */
  accept(run: NewRun, live: FollowerMode | '-'): Promise<Accepted> {
    return this.#batch.add(run.project, { run, live });
  }

  async #send(project: string, items: AcceptRequest[]): Promise<Accepted[]> {
    const { commandMs } = this.#timings;
    const until = performance.now() + commandMs;
    return withinLimit(this.#call(project, items, until), commandMs);
  }

  /** Returns the lease's term if it must be renewed. `attend` renews it every few seconds, but a gateway must be known from its first accept. */
  #lease(project: string): number | '' {
    const now = performance.now();
    // The map's oldest entries come first.
    for (const [other, at] of this.#renewed) {
      if (now - at < this.#timings.leaseMs / RENEWALS) break;
      this.#renewed.delete(other);
    }
    if (this.#renewed.has(project)) return '';
    this.#renewed.set(project, now);
    return this.#timings.leaseMs;
  }

  async #call(project: string, items: AcceptRequest[], until: number): Promise<Accepted[]> {
    await this.#prepare(project);
    if (!this.#clock.known) await this.#clock.read(this.#redis);
    for (let tries = 0; tries < 2; tries++) {
      // The caller has its answer already. An accept that begins now would start a run that nobody expects.
      if (performance.now() >= until) break;
      const { now, answers } = await runScript(this.#redis, acceptScript, project, {
        executeBy: this.#clock.now() + Math.round(until - performance.now()),
        gatewayId: this.#gatewayId,
        leaseMs: this.#lease(project),
        limitBytes: this.#limitOf(project) ?? '',
        items,
      });
      this.#clock.set(now);
      if (answers) return answers;
      // Redis refused the call as late. If the caller still waits, the store's clock has stepped.
    }
    throw new ServiceError('unavailable', 'The run store did not answer in time.');
  }
}

interface AcceptArguments {
  /** The latest time at which the call may execute, ms of the store's clock. */
  readonly executeBy: number;
  readonly gatewayId: string;
  /** Empty if the lease was renewed a moment ago. */
  readonly leaseMs: number | '';
  /** Bytes that the project's runs may take; empty if there is room. */
  readonly limitBytes: number | '';
  readonly items: readonly AcceptRequest[];
}

const acceptScript: Script<AcceptArguments, { now: number; answers?: Accepted[] }> = {
  name: 'accept',
  encode: ({ executeBy, gatewayId, leaseMs, limitBytes, items }) => {
    const kinds = new Kinds();
    const runs: ScriptArgument[] = [];
    for (const { run, live } of items) {
      const kind = kinds.number([run.app, run.fn, packTerms(run), run.queueLimit, run.queueTimeoutMs, live]);
      const more = moreOf(run);
      runs.push(kind, run.runId, run.params, more.length, ...more);
    }
    return [executeBy, gatewayId, leaseMs, limitBytes, kinds.count, ...kinds.values, ...runs];
  },
  decode: (reply) => {
    const [now, answers] = listIn(reply);
    return { now: numberIn(now), ...(answers !== undefined && { answers: listIn(answers).map(acceptedOf) }) };
  },
};

/** Returns the values that most calls do not have. */
function moreOf({ webhook, idempotency, traceparent }: NewRun): string[] {
  const more: string[] = [];
  if (webhook) more.push('hook', webhook.url);
  if (webhook?.secret) more.push('secret', webhook.secret);
  if (idempotency) more.push('claim', idempotency.key, 'fingerprint', idempotency.fingerprint);
  if (traceparent !== undefined) more.push('trace', traceparent);
  return more;
}

const ACCEPTED: Accepted = { state: 'accepted' };
const NEARLY_ALL = Buffer.from(ACCEPTED.state);

function acceptedOf(reply: ScriptReply): Accepted {
  const answer = bytesIn(reply);
  if (answer.equals(NEARLY_ALL)) return ACCEPTED;
  const [state, runId = ''] = answer.toString().split(' ');
  switch (state) {
    case 'joined':
      return { state, runId };
    case 'overloaded':
      return { state, reason: 'queue', retryAfterMs: RETRY_AFTER_MS.queue };
    case 'full':
      return { state: 'overloaded', reason: 'store', retryAfterMs: RETRY_AFTER_MS.store };
    case 'conflict':
    case 'cancelled':
      return { state };
    default:
      throw new TypeError(`accept.lua returned the unknown answer '${state}'`);
  }
}

const ID_SIZE = 16;
/** Random bytes for the next ids. One system call fills the pool. */
const randomPool = new Uint8Array(ID_SIZE * 256);
let randomUsed = randomPool.length;

/** Contract 1, "Request id": returns a new run id. Ids are UUIDv7 (RFC 9562 §5.7), so they sort by time. */
export function newRunId(): RunId {
  if (randomUsed === randomPool.length) {
    randomFillSync(randomPool);
    randomUsed = 0;
  }
  randomUsed += ID_SIZE;
  return v7({ random: randomPool.subarray(randomUsed - ID_SIZE, randomUsed) });
}
