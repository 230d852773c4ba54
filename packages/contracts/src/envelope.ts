// Contract 2: the response envelope.
import { type ErrorFields, errorObject } from './errors.ts';
import { headerOf } from './http-exchange.ts';
import { resultAsJson } from './result.ts';
import type { ItemBatch, Outcome, RunId } from './runs.ts';

/** The fields of a custom runtime's answer beside its body, for the envelope and the views. */
export function answerFields({ head }: Pick<Outcome, 'head'>): { status_code?: number; content_type?: string } {
  if (head === undefined) return {};
  const type = headerOf(head.headers, 'content-type');
  return { status_code: head.status, ...(type !== undefined && { content_type: type }) };
}

/**
 * Returns the envelope's bytes. The function is pure, so that the caller, the look-up and every webhook attempt have the same bytes.
 *
 * @param batches all items of a streamed run that succeeded; unused for other runs
 * @param error formats a failure
 */
export function envelope(
  runId: RunId,
  outcome: Outcome,
  batches: readonly ItemBatch[] = [],
  error: (fields: ErrorFields) => object = errorObject,
): Buffer {
  const { head, tail } = envelopeFrame(runId, outcome);
  if (outcome.error) return Buffer.from(`${head}"error":${JSON.stringify(error(outcome.error))}${tail}`);
  return Buffer.concat([Buffer.from(`${head}"result":`), resultAsJson(outcome, batches), Buffer.from(tail)]);
}

/** The text of an envelope before and after its `result` or `error`. */
export function envelopeFrame(runId: RunId, outcome: Outcome): { readonly head: string; readonly tail: string } {
  const answer = outcome.head ? `${JSON.stringify(answerFields(outcome)).slice(1, -1)},` : '';
  return {
    head: `{"run_id":"${runId}","status":"${outcome.state}",${answer}`,
    tail: `,"run_time_ms":${outcome.runTimeMs},"timestamp":"${new Date(outcome.endedAt).toISOString()}"}`,
  };
}
