// Contract 4: begins attempts of deliveries, by delivery-begin.lua.
import type { DueDelivery, Outcome, RunId } from '@inference-proxy/contracts';
import { outcomeOf } from '../runs/codec.ts';
import {
  bytesIn,
  codeIn,
  listIn,
  numberIn,
  type Script,
  type ScriptArgument,
  type ScriptReply,
  textIn,
} from '../scripts.ts';
import { ENVELOPE_PIECES, envelopeFrom } from './kept-envelope.ts';

/** One attempt under way. */
export interface DeliveryTask {
  readonly project: string;
  readonly app: string;
  readonly runId: RunId;
  /** From 1, over all rounds of the schedule. */
  readonly attempt: number;
  /** Attempts before this round of the schedule. A redelivery starts the schedule again. */
  readonly earlier: number;
  /** Age of this round, ms. */
  readonly ageMs: number;
  /** Set if the delivery was parked until now. */
  readonly parked?: { readonly since: number; readonly reason: string };
  /** The call's trace (W3C Trace Context), if the call has one. */
  readonly traceparent?: string;
  /** Number of times that a worker has taken the run. */
  readonly runAttempt: number;
  /** `webhook-id`: the same on every attempt. */
  readonly deliveryId: string;
  readonly url: string;
  /** The sealed webhook secret. */
  readonly secret?: string;
  /** End of the run, Unix ms. */
  readonly endedAt: number;
  /** Number of earlier attempts of this round with a 4xx answer that stops early (Contract 4, "Retries"). */
  readonly refusals: number;
  /** The stored envelope, or the outcome from which the envelope is built. */
  readonly content: { readonly body: Buffer } | { readonly outcome: Outcome };
  /** Token of this attempt. A repeat of the job has another token and cannot record this attempt. */
  readonly token: string;
}

export type Begun =
  | { readonly state: 'begun'; readonly task: DeliveryTask }
  /** The delivery is delivered or failed, or this attempt was made already. */
  | { readonly state: 'settled' }
  /** Another attempt is under way. */
  | { readonly state: 'busy' }
  /** The attempt is not due yet by the store's clock. */
  | { readonly state: 'early'; readonly inMs: number }
  | { readonly state: 'gone' };

/** Returns the `webhook-id`: the same on every attempt and redelivery of a run's delivery. */
export const deliveryIdOf = (runId: RunId): string => `msg_${runId.replaceAll('-', '')}`;

/** Parses `<since> <reason>`, the record's format. */
export function parkedOf(text: string | undefined): { since: number; reason: string } | undefined {
  const [since, reason] = text?.split(' ') ?? [];
  return since && reason ? { since: Number(since), reason } : undefined;
}

export interface Beginning {
  readonly job: DueDelivery;
  /** Token of the attempt. */
  readonly token: string;
}

/** What the store knows of an attempt that has begun. */
type BegunParts = Omit<DeliveryTask, 'project' | 'runId' | 'attempt' | 'deliveryId' | 'token'>;

export type BeginReply = Exclude<Begun, { state: 'begun' }> | { readonly state: 'begun'; readonly parts: BegunParts };

export const beginScript: Script<{ leaseMs: number; beginnings: readonly Beginning[] }, BeginReply[]> = {
  name: 'delivery-begin',
  encode: ({ leaseMs, beginnings }) => {
    const args: ScriptArgument[] = [leaseMs, ...ENVELOPE_PIECES];
    for (const { job, token } of beginnings) args.push(job.runId, job.attempt, token);
    return args;
  },
  decode: (reply) => listIn(reply).map(answerIn),
};

function answerIn(reply: ScriptReply): BeginReply {
  const [code, ...values] = listIn(reply);
  const state = codeIn(code, ['begun', 'settled', 'busy', 'early', 'gone']);
  if (state === 'early') return { state, inMs: numberIn(values[0]) };
  return state === 'begun' ? { state, parts: begunParts(values) } : { state };
}

function begunParts([figures, parked, url, secret, envelope, body, ...outcome]: readonly ScriptReply[]): BegunParts {
  const [refusals, ended, earlier, ageMs, runAttempt, app = '', trace = '-'] = textIn(figures).split(' ');
  const endedAt = Number(ended);
  const sealed = textIn(secret);
  const wait = parkedOf(textIn(parked));
  const kept = bytesIn(envelope);
  const result = bytesIn(body);
  return {
    app,
    url: textIn(url),
    ...(sealed !== '' && { secret: sealed }),
    refusals: Number(refusals),
    endedAt,
    earlier: Number(earlier),
    ageMs: Number(ageMs),
    ...(wait && { parked: wait }),
    ...(trace !== '-' && { traceparent: trace }),
    runAttempt: Number(runAttempt),
    content: kept.length > 0 ? { body: envelopeFrom(kept, result) } : { outcome: outcomeIn(endedAt, result, outcome) },
  };
}

function outcomeIn(endedAt: number, result: Buffer, [facts, error, head]: readonly ScriptReply[]): Outcome {
  const [state = '', items, streamed, runTimeMs = '', status] = textIn(facts).split(' ');
  return outcomeOf({
    state,
    items: Number(items),
    streamed: streamed === '1',
    runTimeMs,
    endedAt,
    statusCode: Number(status),
    result,
    error: bytesIn(error),
    head: bytesIn(head),
  });
}
