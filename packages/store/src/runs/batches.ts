// Cuts batches of numbered items. A batch that begins at or before a reader's cursor is cut at the cursor.
import type { ItemBatch, ItemKind } from '@inference-proxy/contracts';

const NEWLINE = 0x0a;

/** Returns the number of the batch's last item. */
export const lastOf = (batch: ItemBatch): number => batch.first + batch.count - 1;

/** Returns the part of a batch after item `cursor`, which lies inside the batch. */
export function after(batch: ItemBatch, cursor: number): ItemBatch {
  const skip = cursor - batch.first + 1;
  if (skip <= 0) return batch;
  let at = 0;
  for (let n = 0; n < skip; n++) at = batch.blob.indexOf(NEWLINE, at) + 1;
  return { first: cursor + 1, count: batch.count - skip, kind: batch.kind, blob: batch.blob.subarray(at) };
}

/** Returns the batch of an entry in the items stream: id `<last number>-<count>`, one field whose name is the kind. */
export function batchOfEntry(id: string, kind: string, blob: Buffer): ItemBatch {
  const dash = id.indexOf('-');
  const count = Number(id.slice(dash + 1));
  return { first: Number(id.slice(0, dash)) - count + 1, count, kind: kind as ItemKind, blob };
}
