// Contract 5, "Answers that wait for slow readers": reads a large result from the store in pieces, as its reader takes them.
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { Lane } from '../lane.ts';
import { runScript } from '../scripts.ts';

/** A larger result is not handed out with its outcome. The same number stands in lua/follow and lua/shared/finish. */
export const RESULT_BYTES = 64 * 1024;
/** Redis copies the whole result for each piece. So a very large result has larger pieces, and no result has more than this many pieces. */
const MOST_PIECES = 16;
const PIECE_BYTES = 1024 * 1024;

/** Returns the size of the pieces in which a result of `bytes` bytes is read. */
export const pieceBytes = (bytes: number): number =>
  Math.min(bytes, Math.max(PIECE_BYTES, Math.ceil(bytes / MOST_PIECES)));

/**
 * Yields a result in pieces. A piece is read after the previous piece was taken.
 *
 * @param bytes the result's length
 * @throws ServiceError `unavailable`; `not_found` if the run was forgotten in between
 */
export async function* readResult(
  redis: Redis,
  lane: Lane,
  project: string,
  runId: RunId,
  bytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  const most = pieceBytes(bytes);
  for (let from = 0; from < bytes; from += most) {
    const size = Math.min(most, bytes - from);
    const piece = await lane.call(size, () => runScript(redis, 'result', project, [runId, from + 1, from + size]));
    const [text] = piece as [Buffer?];
    if (text?.length !== size) throw new ServiceError('not_found', 'The run is kept no longer.', { runId });
    yield text;
  }
}
