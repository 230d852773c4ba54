// RFC 9112 §9.6: makes each answer of a stopping gateway the last on its connection, so that the next call goes to another gateway.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Sends `Connection: close` if the head is not written yet. Otherwise, closes the connection after the answer. */
export function lastOnItsConnection(raw: ServerResponse): void {
  raw.shouldKeepAlive = false;
  if (raw.headersSent) raw.once('finish', () => raw.req.socket.end());
}

/** Makes every further answer of this server the last on its connection. Before the call of this function, answers cost nothing extra. */
export function answerLast(server: Server): void {
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    response.shouldKeepAlive = false;
  });
}
