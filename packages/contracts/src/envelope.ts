// Contract 2: the response envelope. Raw JSON text is spliced, never parsed: integers past 2^53 and `1.0` stay as the function wrote them.
import { type ErrorFields, errorObject } from './errors.ts';
import type { ItemBatch, Outcome, RunId } from './runs.ts';

const NEWLINE = 0x0a;
const COMMA = 0x2c;

/** One batch as the inside of a JSON array: JSON texts as they are, strings quoted. */
function arrayBody(batch: ItemBatch): Buffer {
  if (batch.kind === 'm') return Buffer.from(JSON.stringify(batch.blob.toString()));
  if (batch.kind === 's') {
    const quoted = batch.blob
      .toString()
      .split('\n')
      .map((item) => JSON.stringify(item));
    return Buffer.from(quoted.join(','));
  }
  const body = Buffer.from(batch.blob);
  for (let at = body.indexOf(NEWLINE); at !== -1; at = body.indexOf(NEWLINE, at + 1)) body[at] = COMMA;
  return body;
}

/** The items as a JSON array, in order. */
export function itemsAsJson(batches: readonly ItemBatch[]): Buffer {
  const parts: Buffer[] = [];
  for (const batch of batches) parts.push(Buffer.from(parts.length === 0 ? '[' : ','), arrayBody(batch));
  parts.push(Buffer.from(parts.length === 0 ? '[]' : ']'));
  return Buffer.concat(parts);
}

/**
 * The envelope's bytes: a pure function of the run, so that the caller, the look-up and every webhook attempt see the same ones.
 *
 * @param batches all items of a run that succeeded and was streamed; not used otherwise
 * @param error how a failure is put
 */
export function envelope(
  runId: RunId,
  outcome: Outcome,
  batches: readonly ItemBatch[] = [],
  error: (fields: ErrorFields) => object = errorObject,
): Buffer {
  const head = `{"run_id":"${runId}","status":"${outcome.state}",`;
  const tail = `,"run_time_ms":${outcome.runTimeMs},"timestamp":"${new Date(outcome.endedAt).toISOString()}"}`;
  if (outcome.error) return Buffer.from(`${head}"error":${JSON.stringify(error(outcome.error))}${tail}`);
  const result = outcome.streamed ? itemsAsJson(batches) : (outcome.result ?? Buffer.from('null'));
  return Buffer.concat([Buffer.from(`${head}"result":`), result, Buffer.from(tail)]);
}
