// Contract 5: reads all items of a run, in pages that hold Redis only for a moment each.
import type { ItemBatch, RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../redis.ts';
import { batchOfEntry, lastOf } from './codec.ts';

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
