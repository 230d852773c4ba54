// Contract 1, "Request id": creates run ids, which are UUIDv7 (RFC 9562 §5.7), so that ids sort by time.
import { randomFillSync } from 'node:crypto';
import type { RunId } from '@inference-proxy/contracts';
import { v7 } from 'uuid';

const ID_BYTES = 16;
/** Random bytes for the next ids. One system call fills the pool. */
const pool = new Uint8Array(ID_BYTES * 256);
let used = pool.length;

/** Returns a new run id. */
export function newRunId(): RunId {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += ID_BYTES;
  return v7({ random: pool.subarray(used - ID_BYTES, used) });
}
