// Contract 2: how an outcome is answered as one envelope, whoever asked for it.
import type { OutgoingHttpHeaders } from 'node:http';
import { envelope, errorStatus, type Outcome, type RunId } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import { retryAfter } from '../http/answer.ts';

export interface EnvelopeAnswer {
  readonly status: number;
  readonly body: Buffer;
  readonly headers: OutgoingHttpHeaders | undefined;
}

/** The envelope of a run that has ended, and the status that goes with it. */
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
  const batches = outcome.streamed && outcome.items > 0 ? await store.items(project, runId) : [];
  return { status: outcome.statusCode ?? 200, body: envelope(runId, outcome, batches), headers: undefined };
}
