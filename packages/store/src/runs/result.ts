// Contract 5, "Answers that wait for slow readers": reads a large result from the store in pieces (result.lua), as its reader takes them.
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { Lane } from '../lane.ts';
import { bytesIn, listIn, runScript, type Script } from '../scripts.ts';

/** A larger result is not handed out with its outcome. The same number stands in follow.lua and parts/ending.lua. */
export const RESULT_BYTES = 64 * 1024;
/** Redis copies the whole result for each piece. So a very large result has larger pieces, and no result has more than this many pieces. */
const MOST_PIECES = 16;
const PIECE_BYTES = 1024 * 1024;

/** Returns the size of the pieces in which a result of `bytes` bytes is read. */
export const pieceBytes = (bytes: number): number =>
  Math.min(bytes, Math.max(PIECE_BYTES, Math.ceil(bytes / MOST_PIECES)));

/** Bytes `first` to `last` of a result, from 1. Returns undefined if the run is gone. */
const resultScript: Script<{ runId: RunId; first: number; last: number }, Buffer | undefined> = {
  name: 'result',
  encode: ({ runId, first, last }) => [runId, first, last],
  decode: (reply) => {
    const [piece] = listIn(reply);
    return piece === undefined ? undefined : bytesIn(piece);
  },
};

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
    const text = await lane.call(size, () =>
      runScript(redis, resultScript, project, { runId, first: from + 1, last: from + size }),
    );
    if (text?.length !== size)
      throw new ServiceError('not_found', 'The retention of the run’s result has ended.', { runId });
    yield text;
  }
}
