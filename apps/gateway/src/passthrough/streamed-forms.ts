// Contract 1, "Custom runtimes": converts items back into the server's body. Pure.
import { type AnswerForm, type AnswerHead, type ItemBatch, piecesOf, type RunId } from '@inference-proxy/contracts';
import { encodedItems, encodeEvent, errorData } from '../streaming/events.ts';

const LINE_END = Buffer.from('\n');

/** Returns whether the body arrives as items. */
export const isStreamed = ({ form }: AnswerHead): boolean =>
  form === 'sse' || form === 'ndjson' || form === 'chunks' || form === 'bytes';

/** Returns a batch as a part of the body: events with the server's names and ids, lines, or pieces of text. */
export function itemBytes(form: AnswerForm, batch: ItemBatch): Buffer {
  if (form === 'sse') return encodedItems(batch, 'plain', true);
  return form === 'ndjson' ? Buffer.concat([batch.blob, LINE_END]) : piecesOf([batch]);
}

/** Returns the bytes that report an error at the end of an incomplete body, or undefined if the form has no such bytes. */
export function errorEnding(form: AnswerForm, runId: RunId, error: object): Buffer | undefined {
  const data = errorData(runId, error);
  if (form === 'sse') return encodeEvent('error', data);
  return form === 'ndjson' ? Buffer.from(`${JSON.stringify(data)}\n`) : undefined;
}
