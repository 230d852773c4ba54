// All items of a run, in pages that hold Redis only for a moment each.
import type { ItemBatch, RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../time-limit.ts';
import { batchOfEntry, lastOf } from './batches.ts';

const PAGE = 64;

/** @param limitMs how long each page may take */
export async function readItems(redis: Redis, project: string, runId: RunId, limitMs: number): Promise<ItemBatch[]> {
  const key = projectPrefix(project) + names.items + runId;
  const batches: ItemBatch[] = [];
  let from = 1;
  while (true) {
    const page = await withinLimit(redis.xrangeBuffer(key, from, '+', 'COUNT', PAGE), limitMs);
    for (const [id, fields] of page) {
      const batch = batchOfEntry(id.toString(), (fields[0] as Buffer).toString(), fields[1] as Buffer);
      batches.push(batch);
      from = lastOf(batch) + 1;
    }
    if (page.length < PAGE) return batches;
  }
}
