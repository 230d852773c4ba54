// Contract 5, "Answers that wait for slow readers": a large result leaves the store piece by piece, as its reader takes it.
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { Lane } from '../lane.ts';
import { runScript } from '../scripts.ts';

/** A larger result is not handed out with its outcome. As lua/follow and lua/shared/finish have it. */
export const RESULT_BYTES = 64 * 1024;
/** Redis copies the whole result for each piece. So a very large result has larger pieces, and no result has more than this many. */
const MOST_PIECES = 16;
const PIECE_BYTES = 1024 * 1024;

/** Size of the pieces in which a result of that many bytes is read. */
export const pieceBytes = (bytes: number): number =>
  Math.min(bytes, Math.max(PIECE_BYTES, Math.ceil(bytes / MOST_PIECES)));

/**
 * Yields a result in pieces. Each piece is read when the one before has been taken.
 *
 * @param bytes the result's length
 * @throws ServiceError `unavailable`; `not_found` where the run is forgotten meanwhile
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
