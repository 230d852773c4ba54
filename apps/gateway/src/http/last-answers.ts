// RFC 9112 §9.6: what a gateway that stops still answers is the last on its connection, so that the next call is made to another gateway.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Says `Connection: close` where that can still be said, and closes the connection when the answer has left. */
export function lastOnItsConnection(raw: ServerResponse): void {
  raw.shouldKeepAlive = false;
  if (raw.headersSent) raw.once('finish', () => raw.req.socket.end());
}

/** From now on, every answer of this server. Nothing has to be looked at before: a gateway that does not stop pays nothing. */
export function answerLast(server: Server): void {
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    response.shouldKeepAlive = false;
  });
}
