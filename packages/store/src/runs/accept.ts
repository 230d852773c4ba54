// Contract 1: accepts calls as runs, by accept.lua. All calls of a tick and project share one script call.
import { randomFillSync } from 'node:crypto';
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { v7 } from 'uuid';
import { INDEX_MS, names, projectPrefix, projectsKey } from '../keys.ts';
import { type Shares, shareText } from '../maintenance/shares.ts';
import { StoreClock, TickBatch, withinLimit } from '../redis.ts';
import {
  bytesIn,
  Kinds,
  listIn,
  numberIn,
  runScript,
  type Script,
  type ScriptArgument,
  type ScriptReply,
} from '../scripts.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import type { Canceller } from './cancel.ts';
import { type FollowerMode, type Following, MODES, packTerms } from './codec.ts';
import type { Feeds } from './feeds.ts';
import type { RunReader } from './reader.ts';

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
  /** Absent: false. The parameters are a request to a web server (contract 1, "Custom runtimes"). */
  readonly isRequest?: boolean;
  /** Retention after the end, ms. */
  readonly keepMs: number;
  /** The secret is sealed. */
  readonly webhook?: { readonly url: string; readonly secret?: string };
  /** The run is cancelled this many ms after its last reader has disconnected. If absent, the run continues. */
  readonly absentMs?: number;
  /** Two hashes: `key` of project, app, function and key; `fingerprint` of the request. */
  readonly idempotency?: { readonly key: string; readonly fingerprint: string };
  /** The app's code comes from deployed versions (Contract 7). */
  readonly deployed?: boolean;
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

export interface AcceptorParts {
  readonly commands: Redis;
  readonly gatewayId: string;
  readonly timings: StoreTimings;
  readonly logger: StoreLogger;
  readonly shares: Shares;
}

/** Accepts calls for a gateway. */
export class Acceptor {
  readonly #clock = new StoreClock();
  readonly #batch: TickBatch<AcceptRequest, Accepted>;
  /** Per project: time of the last accept that renewed the gateway's lease. */
  readonly #renewed = new Map<string, number>();
  /** Per project: time at which this gateway last wrote the project's place in the index. */
  readonly #indexed = new Map<string, number>();

  readonly #parts: AcceptorParts;
  readonly #feeds: Feeds;
  readonly #canceller: Canceller;

  constructor(parts: AcceptorParts, feeds: Feeds, canceller: Canceller) {
    this.#parts = parts;
    this.#feeds = feeds;
    this.#canceller = canceller;

    this.#batch = new TickBatch(
      (project, items) => this.#send(project, items),
      ({ run }) => run.params.length,
    );
  }

  /**
   * Accepts a run and follows it from its first item, unless `following` is `none`. The reader exists before the answer. It is closed here if the
   * run was not accepted.
   *
   * `accepted` rejects with `unavailable` if no answer came in time. The accept may still execute, so an unpromised run is cancelled
   * as soon as the store is back. It rejects with `overloaded` if memory is short.
   */
  accept(run: NewRun, following: Following | 'none'): { accepted: Promise<Accepted>; reader?: RunReader } {
    const mode = following === 'none' ? undefined : MODES[following];
    const reader = mode && this.#feeds.openNew(run.project, run.runId, mode, following === 'answer');
    const accepted = this.#batch.add(run.project, { run, live: mode ?? '-' }).then(
      (answer) => {
        if (answer.state !== 'accepted') this.#refuse(run, reader);
        else if (reader) this.#feeds.confirm(run.project, run.runId);
        return answer;
      },
      (error: unknown) => {
        if (error instanceof ServiceError && error.code === 'overloaded') this.#refuse(run, reader);
        else reader?.close();
        if (!(error instanceof ServiceError)) throw error;
        // A script that failed halfway may have accepted the run.
        const mayExist = error.code === 'unavailable' || error.code === 'internal';
        if (mayExist && !run.promised) void this.#cancelLate(run);
        throw new ServiceError(error.code, error.message, {
          cause: error.cause,
          ...(mayExist && { runId: run.runId }),
        });
      },
    );
    return reader ? { accepted, reader } : { accepted };
  }

  /** Closes the reader of a refused call. The store has no run, so no departure is sent. */
  #refuse({ project, runId }: NewRun, reader: RunReader | undefined): void {
    if (!reader) return;
    this.#feeds.refused(project, runId);
    reader.close();
  }

  async #cancelLate(run: NewRun): Promise<void> {
    try {
      await this.#canceller.withdraw(run.project, run.runId);
    } catch (error) {
      this.#parts.logger.warn(
        { err: error, runId: run.runId },
        'a run whose accept was not answered was not cancelled; if it was accepted, it runs to its end',
      );
    }
  }

  async #send(project: string, items: AcceptRequest[]): Promise<Accepted[]> {
    const { commandMs } = this.#parts.timings;
    const until = performance.now() + commandMs;
    return withinLimit(this.#call(project, items, until), commandMs);
  }

  /** Returns the lease's term if it must be renewed. `attend` renews it every few seconds, but a gateway must be known from its first accept. */
  #lease(project: string): number | '' {
    const now = performance.now();
    // The map's oldest entries come first.
    for (const [other, at] of this.#renewed) {
      if (now - at < this.#parts.timings.leaseMs / RENEWALS) break;
      this.#renewed.delete(other);
    }
    if (this.#renewed.has(project)) return '';
    this.#renewed.set(project, now);
    return this.#parts.timings.leaseMs;
  }

  /** Prepares a project's first accept: the gateway's channel is confirmed, and the project is in the index that reap visits. */
  async #prepare(project: string): Promise<void> {
    await this.#feeds.listen(project);
    const now = performance.now();
    for (const [other, at] of this.#indexed) {
      if (now - at < INDEX_MS) break;
      this.#indexed.delete(other);
    }
    if (this.#indexed.has(project)) return;
    const { commands, shares } = this.#parts;
    const share = shares.shareOf(project);
    await Promise.all([
      commands.zadd(projectsKey, Date.now(), project),
      // A new project is held to its share before the next sweep writes it.
      share !== undefined && commands.set(projectPrefix(project) + names.share, shareText(share, false), 'NX'),
    ]);
    this.#indexed.set(project, now);
  }

  async #call(project: string, items: AcceptRequest[], until: number): Promise<Accepted[]> {
    const { commands, gatewayId, shares } = this.#parts;
    await this.#prepare(project);
    if (!this.#clock.known) await this.#clock.read(commands);
    for (let tries = 0; tries < 2; tries++) {
      // The caller has its answer already. An accept that begins now would start a run that nobody expects.
      if (performance.now() >= until) break;
      const { now, answers } = await runScript(commands, acceptScript, project, {
        executeBy: this.#clock.now() + Math.round(until - performance.now()),
        gatewayId,
        leaseMs: this.#lease(project),
        limitBytes: shares.hasPlenty ? '' : (shares.acceptLimit(project) ?? ''),
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
      const { app, fn, queueLimit, queueTimeoutMs, deployed } = run;
      const kind = kinds.number([app, fn, packTerms(run), queueLimit, queueTimeoutMs, live, deployed ? 1 : 0]);
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
