// Contract 5: batches of numbered items. Reads all items of a run, in pages that hold Redis only for a moment each.
import type { ItemBatch, ItemKind, RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../time-limit.ts';

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

const PAGE = 64;
/** Bytes of a page for a slow reader. */
const PAGE_BYTES = 256 * 1024;

/** Returns all items of a run. @param limitMs time limit of each page */
export async function readItems(redis: Redis, project: string, runId: RunId, limitMs: number): Promise<ItemBatch[]> {
  const batches: ItemBatch[] = [];
  for await (const batch of itemBatches(redis, project, runId, limitMs, PAGE)) batches.push(batch);
  return batches;
}

/**
 * Yields all items of a run. The next page is read after the batches of the previous page were taken.
 *
 * @param limitMs time limit of each page
 * @param first entries of the first page. A further page has as many entries as fit into `PAGE_BYTES` by the size of the previous entry.
 */
export async function* itemBatches(
  redis: Redis,
  project: string,
  runId: RunId,
  limitMs: number,
  first = 1,
): AsyncGenerator<ItemBatch, void, undefined> {
  const key = projectPrefix(project) + names.items + runId;
  let from = 1;
  let count = first;
  while (true) {
    const page = await withinLimit(redis.xrangeBuffer(key, from, '+', 'COUNT', count), limitMs);
    let size = 1;
    for (const [id, fields] of page) {
      const batch = batchOfEntry(id.toString(), (fields[0] as Buffer).toString(), fields[1] as Buffer);
      size = batch.blob.length;
      from = lastOf(batch) + 1;
      yield batch;
    }
    if (page.length < count) return;
    if (first !== PAGE) count = Math.max(1, Math.min(PAGE, Math.floor(PAGE_BYTES / size)));
  }
}
