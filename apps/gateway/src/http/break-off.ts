// RFC 9112 §8: ends an answer before its body is complete, so that the reader notices the missing last chunk.
import type { ServerResponse } from 'node:http';

/**
 * Closes the connection in the middle of an answer, after the bytes that are already written.
 * In HTTP/1.0 the end of the connection ends a body, so only a reset shows that the body is incomplete.
 */
export function breakOff(raw: ServerResponse): void {
  const { socket } = raw;
  if (socket === null) raw.destroy();
  else if (raw.req.httpVersion === '1.0') socket.resetAndDestroy();
  else socket.destroySoon();
}
