// RFC 9112 §8: a body that ends without its last chunk is incomplete, and its reader can tell.
import type { ServerResponse } from 'node:http';

/** Ends the connection in the midst of the answer, after what has been written. A body that only the connection's end delimits has to be reset. */
export function breakOff(raw: ServerResponse): void {
  const { socket } = raw;
  if (socket === null) raw.destroy();
  else if (raw.req.httpVersion === '1.0') socket.resetAndDestroy();
  else socket.destroySoon();
}
