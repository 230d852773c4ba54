// Contract 2: answers a call with the envelope of its outcome.
import type { OutgoingHttpHeaders } from 'node:http';
import { envelope, envelopeFrame, errorStatus, type Outcome, type RunId } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import { retryAfter } from '../http/answer.ts';
import { resultGone } from '../http/not-found.ts';
import type { AnswerBody } from '../http/stored-answer.ts';
import { resultBody } from '../http/stored-result.ts';

export interface EnvelopeAnswer {
  readonly status: number;
  readonly body: AnswerBody;
  readonly headers: OutgoingHttpHeaders | undefined;
}

/** Returns the envelope of a run that has ended, and its HTTP status. */
export async function envelopeAnswer(
  store: GatewayStore,
  project: string,
  runId: RunId,
  outcome: Outcome,
): Promise<EnvelopeAnswer> {
  const { error } = outcome;
  if (error) {
    return { status: errorStatus(error), body: envelope(runId, outcome), headers: retryAfter(error) };
  }
  const { head, tail } = envelopeFrame(runId, outcome);
  const body = await resultBody(store, project, runId, outcome, [`${head}"result":`, tail]);
  if (body === undefined) throw resultGone(runId);
  return { status: outcome.statusCode ?? 200, body, headers: undefined };
}
