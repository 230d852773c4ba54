// Contract 1, "Custom runtimes": items as the body that they were. Pure.
import { type AnswerForm, type AnswerHead, type ItemBatch, piecesOf, type RunId } from '@inference-proxy/contracts';
import { encodedItems } from '../streaming/encoded-items.ts';
import { encodeEvent, errorData } from '../streaming/sse-encoding.ts';

const LINE_END = Buffer.from('\n');

/** Whether the body comes as items. */
export const isStreamed = ({ form }: AnswerHead): boolean => form === 'sse' || form === 'ndjson' || form === 'chunks';

/** A batch as a part of the body: events with the names and ids that the server gave them, lines, or pieces. */
export function itemBytes(form: AnswerForm, batch: ItemBatch): Buffer {
  if (form === 'sse') return encodedItems(batch, 'plain', true);
  return form === 'ndjson' ? Buffer.concat([batch.blob, LINE_END]) : piecesOf([batch]);
}

/** How a body that cannot go on says so, where its form has a way to. */
export function lastWords(form: AnswerForm, runId: RunId, error: object): Buffer | undefined {
  const data = errorData(runId, error);
  if (form === 'sse') return encodeEvent('error', data);
  return form === 'ndjson' ? Buffer.from(`${JSON.stringify(data)}\n`) : undefined;
}
