// Contract 4: decodes a run's delivery from the scripts' format (lua/delivery-begin.lua, lua/shared/hold.lua).
import type { DueDelivery, Outcome, RunId } from '@inference-proxy/contracts';
import { outcomeOf } from '../runs/outcome-codec.ts';
import type { Begun } from './delivery-store.ts';
import { envelopeFrom } from './kept-envelope.ts';

type BegunReply = [
  state: Buffer,
  figures: Buffer,
  parked: Buffer,
  url: Buffer,
  secret: Buffer,
  envelope: Buffer,
  result: Buffer,
  outcome: Buffer,
  error: Buffer,
  head: Buffer,
];
export type BeginReply = BegunReply | [state: Buffer, inMs: number] | [state: Buffer];

/** Returns the `webhook-id`: the same on every attempt and redelivery of a run's delivery. */
export const deliveryIdOf = (runId: RunId): string => `msg_${runId.replaceAll('-', '')}`;

/** Decodes the answer of lua/delivery-begin to a job. @param token token of the attempt */
export function begunBy(job: DueDelivery, token: string, reply: BeginReply): Begun {
  const state = reply[0].toString() as Begun['state'];
  if (state === 'early') return { state, inMs: reply[1] as number };
  if (state !== 'begun') return { state };
  const [, figures, parked, url, secret, kept, result, ...outcomeParts] = reply as BegunReply;
  const [refusals, ended, earlier, ageMs, runAttempt, app = '', trace = '-'] = figures.toString().split(' ');
  const endedAt = Number(ended);
  const wait = parkedOf(parked.toString());
  return {
    state: 'begun',
    task: {
      project: job.project,
      app,
      runId: job.runId,
      attempt: job.attempt,
      deliveryId: deliveryIdOf(job.runId),
      url: url.toString(),
      ...(secret.length > 0 && { secret: secret.toString() }),
      refusals: Number(refusals),
      endedAt,
      earlier: Number(earlier),
      ageMs: Number(ageMs),
      ...(wait && { parked: wait }),
      ...(trace !== '-' && { traceparent: trace }),
      runAttempt: Number(runAttempt),
      content:
        kept.length > 0
          ? { body: envelopeFrom(kept, result) }
          : { outcome: storedOutcome(endedAt, result, ...outcomeParts) },
      token,
    },
  };
}

/** Parses `<since> <reason>`, the record's format. */
export function parkedOf(text: string | undefined): { since: number; reason: string } | undefined {
  const [since, reason] = text?.split(' ') ?? [];
  return since && reason ? { since: Number(since), reason } : undefined;
}

function storedOutcome(endedAt: number, result: Buffer, figures: Buffer, error: Buffer, head: Buffer): Outcome {
  const [state, items, streamed, runTimeMs, status] = figures.toString().split(' ') as [
    string,
    string,
    string,
    string,
    string,
  ];
  return outcomeOf({
    state,
    items: Number(items),
    streamed: streamed === '1',
    runTimeMs,
    endedAt,
    statusCode: Number(status),
    result,
    error,
    head,
  });
}

/** Returns whether an attempt is open at `now`, Unix ms. `hold` has the format of lua/shared/hold.lua. */
export function isHeld(hold: string | undefined, now: number): boolean {
  const [, upto, lease] = hold?.split(' ') ?? [];
  return Number(upto) > now && Number(upto) <= now + 2 * Number(lease);
}
