// Contract 5, "Answers that wait for slow readers": reads an answer from the store at the pace of its socket.
import { once } from 'node:events';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { JSON_TYPE, SERVER, send } from './answer.ts';
import type { AnswersInFlight } from './answers-in-flight.ts';

/** A body that is still in the store. */
export interface StoredBody {
  /** Length in bytes. Absent if the length is unknown before the body is read. */
  readonly bytes?: number;
  /** How many bytes of the body this process holds at one time. */
  readonly heldBytes: number;
  /** The process holds the whole body, so that it knows the length. */
  readonly whole?: boolean;
  pieces(): AsyncGenerator<Buffer>;
}

export type AnswerBody = Buffer | StoredBody;

/** Sends an answer. A stored body waits until this process may hold it. @throws errors of the store before the first byte */
export async function sendBody(
  answers: AnswersInFlight,
  raw: ServerResponse,
  requestId: string,
  status: number,
  body: AnswerBody,
  more?: OutgoingHttpHeaders,
): Promise<void> {
  if (Buffer.isBuffer(body)) {
    send(raw, requestId, status, body, more);
    return;
  }
  await answers.hold(raw, body.heldBytes, async () => {
    if (body.whole) {
      send(raw, requestId, status, Buffer.concat(await allPieces(body.pieces())), more);
      await whenSent(raw);
      return;
    }
    await writePieces(raw, body, () =>
      raw.writeHead(status, {
        'content-type': JSON_TYPE,
        ...(body.bytes !== undefined && { 'content-length': body.bytes }),
        'x-request-id': requestId,
        server: SERVER,
        ...more,
      }),
    );
  });
}

/**
 * Writes a body at the pace of its socket. Resolves when the reader has taken all of it, or has disconnected.
 *
 * @param begin sets the head of the response; called when the first piece has been read
 * @throws errors of the store; after the head, the connection is closed before the body is complete
 */
export async function writePieces(raw: ServerResponse, body: StoredBody, begin: () => void): Promise<void> {
  const pieces = body.pieces();
  try {
    let piece = await pieces.next();
    if (raw.destroyed || raw.headersSent) return;
    begin();
    if (raw.req.method === 'HEAD') piece = { done: true, value: undefined };
    for (; !piece.done; piece = await pieces.next()) {
      if (!raw.write(piece.value)) await drained(raw);
      if (raw.destroyed) return;
    }
    raw.end();
    await whenSent(raw);
  } catch (thrown) {
    if (raw.headersSent) abort(raw);
    throw thrown;
  } finally {
    await pieces.return(undefined);
  }
}

/** Resolves when the socket accepts more bytes, or is closed. */
async function drained(raw: ServerResponse): Promise<void> {
  if (raw.destroyed) return;
  const waiting = new AbortController();
  const { signal } = waiting;
  await Promise.race([once(raw, 'drain', { signal }), once(raw, 'close', { signal })]);
  waiting.abort();
}

/** Resolves when the whole answer is sent, or its connection is closed. */
export async function whenSent(raw: ServerResponse): Promise<void> {
  if (!raw.destroyed && !raw.closed) await once(raw, 'close');
}

/** Returns all pieces in memory. */
export async function allPieces(pieces: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const list: Buffer[] = [];
  for await (const piece of pieces) list.push(piece);
  return list;
}

/**
 * Closes the connection in the middle of an answer, after the bytes that are already written (RFC 9112 §8).
 * The reader then notices the missing last chunk.
 * In HTTP/1.0 the end of the connection ends a body, so only a reset shows that the body is incomplete.
 */
export function abort(raw: ServerResponse): void {
  const { socket } = raw;
  if (socket === null) raw.destroy();
  else if (raw.req.httpVersion === '1.0') socket.resetAndDestroy();
  else socket.destroySoon();
}
