// Contract 1: a call becomes a run. All calls of a tick and project go to the store in one script call.
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { Kinds } from '../kinds.ts';
import { runScript, type ScriptArgument } from '../scripts.ts';
import { TickBatch } from '../tick-batch.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreTimings } from '../timings.ts';
import { termsOf } from './call.ts';
import type { LiveMode } from './reader.ts';
import { StoreClock } from './store-clock.ts';

export interface NewRun {
  readonly project: string;
  readonly runId: RunId;
  readonly app: string;
  readonly fn: string;
  /** A JSON object's text, exactly as the caller sent it. */
  readonly params: Buffer;
  /** Somebody may come back for it (contract, "Words"). */
  readonly promised: boolean;
  /** Goes at the pace of its fastest reader (contract 3). */
  readonly paced: boolean;
  /** Retention after the end, ms. */
  readonly keepMs: number;
  /** The secret is sealed. */
  readonly webhook?: { readonly url: string; readonly secret?: string };
  /** Cancelled that many ms after its last reader has gone; absent: it goes on. */
  readonly absentMs?: number;
  /** Both are hashes: of project, app, function and key; of the request. */
  readonly idempotency?: { readonly key: string; readonly fingerprint: string };
  readonly queueLimit: number;
  readonly queueTimeoutMs: number;
  /** W3C trace context that goes with the run; valid, so that it holds no space. */
  readonly traceparent?: string;
}

export type Accepted =
  | { readonly state: 'accepted' | 'conflict' | 'cancelled' }
  | { readonly state: 'joined'; readonly runId: RunId }
  /** The app's queue is full, or the run store of what must be kept. Nothing was accepted. */
  | { readonly state: 'overloaded'; readonly reason: 'queue' | 'store'; readonly retryAfterMs: number };

/** When a refused call may be tried again: queues move in a second, room in the store comes by retention. */
const RETRY_AFTER_MS = { queue: 1_000, store: 5_000 } as const;

/** A lease is renewed that often in its term. */
const RENEWALS = 15;

interface Acceptance {
  readonly run: NewRun;
  readonly live: LiveMode | '-';
}

export class Acceptor {
  private readonly clock = new StoreClock();
  private readonly batch: TickBatch<Acceptance, Accepted>;
  /** Per project: when the gateway's lease was last renewed by an accept. */
  private readonly renewed = new Map<string, number>();

  /**
   * @param prepare what must be confirmed before a project's first accept
   * @param roomOf bytes that the project's runs may take; undefined while it is far from that
   */
  constructor(
    private readonly redis: Redis,
    private readonly gatewayId: string,
    private readonly timings: StoreTimings,
    private readonly prepare: (project: string) => Promise<void>,
    private readonly roomOf: (project: string) => number | undefined,
  ) {
    this.batch = new TickBatch(
      (project, items) => this.send(project, items),
      ({ run }) => run.params.length,
    );
  }

  /** @throws ServiceError `unavailable` without an answer in time: the run may exist; `overloaded` when memory is short */
  accept(run: NewRun, live: LiveMode | '-'): Promise<Accepted> {
    return this.batch.add(run.project, { run, live });
  }

  private async send(project: string, items: Acceptance[]): Promise<Accepted[]> {
    const { commandMs } = this.timings;
    const until = performance.now() + commandMs;
    return withinLimit(this.call(project, items, until), commandMs);
  }

  /** The lease's term where it is to be renewed: attending does that every few seconds, but a gateway must be known from its first accept. */
  private lease(project: string): number | '' {
    const now = performance.now();
    // The oldest come first.
    for (const [other, at] of this.renewed) {
      if (now - at < this.timings.leaseMs / RENEWALS) break;
      this.renewed.delete(other);
    }
    if (this.renewed.has(project)) return '';
    this.renewed.set(project, now);
    return this.timings.leaseMs;
  }

  private async call(project: string, items: Acceptance[], until: number): Promise<Accepted[]> {
    await this.prepare(project);
    if (!this.clock.known) {
      const [seconds, micros] = await this.redis.time();
      this.clock.set(Number(seconds) * 1000 + Number(micros) / 1000);
    }
    const calls = callArguments(items);
    for (let tries = 0; tries < 2; tries++) {
      const executeBy = this.clock.now() + Math.max(0, Math.round(until - performance.now()));
      const args: ScriptArgument[] = [
        executeBy,
        this.gatewayId,
        this.lease(project),
        this.roomOf(project) ?? '',
        ...calls,
      ];
      const [now, answers] = (await runScript(this.redis, 'accept', project, args)) as [number, Buffer[] | undefined];
      this.clock.set(now);
      if (answers) return answers.map(acceptedOf);
      // Refused as late. If the caller still waits, it was the store's clock that stepped.
      if (performance.now() >= until) break;
    }
    throw new ServiceError('unavailable', 'The run store did not answer in time.');
  }
}

/** Kinds of calls and the calls, as lua/accept is told of them. */
function callArguments(items: readonly Acceptance[]): ScriptArgument[] {
  const kinds = new Kinds();
  const runs: ScriptArgument[] = [];
  for (const { run, live } of items) {
    const kind = kinds.number([run.app, run.fn, termsOf(run), run.queueLimit, run.queueTimeoutMs, live]);
    const more = moreOf(run);
    runs.push(kind, run.runId, run.params, more.length, ...more);
  }
  return [kinds.count, ...kinds.values, ...runs];
}

/** What most calls do not have. */
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

function acceptedOf(answer: Buffer): Accepted {
  if (answer.equals(NEARLY_ALL)) return ACCEPTED;
  const [state, runId] = answer.toString().split(' ') as [string, string];
  switch (state) {
    case 'joined':
      return { state, runId };
    case 'overloaded':
      return { state, reason: 'queue', retryAfterMs: RETRY_AFTER_MS.queue };
    case 'full':
      return { state: 'overloaded', reason: 'store', retryAfterMs: RETRY_AFTER_MS.store };
    default:
      return { state: state as 'accepted' };
  }
}
