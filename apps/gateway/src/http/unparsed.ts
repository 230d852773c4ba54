// Contract 2: what Node's parser refuses, or hands over as a bare connection, has no response object. It is answered in the same shape, or closed.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ErrorFields, errorKinds, errorObject, ServiceError } from '@inference-proxy/contracts';
import { JSON_TYPE, SERVER, sendError } from './answer.ts';
import { originLines } from './cors.ts';
import type { Edge } from './edges.ts';

const REASONS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not arrive in time.',
  HPE_HEADER_OVERFLOW: 'The headers are too large.',
};

export interface ParseError extends Error {
  readonly code?: string;
  /** What the parser was reading when it failed. */
  readonly rawPacket?: Buffer;
}

/** Requests that were refused because of their body. */
const refused = new WeakSet<IncomingMessage>();

/**
 * Answers an error of the parser or the connection.
 *
 * @param newest the response to the newest request of the connection, if it is not finished. Nothing can be written inside it
 */
export function answerUnparsed(
  error: ParseError,
  socket: Socket,
  newest: ServerResponse | undefined,
  edge: Edge,
): void {
  // A connection made ahead has asked nothing: what would be said on it could be taken for the answer to the request that is on its way.
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0) {
    socket.destroy();
    return;
  }
  if (newest && refused.has(newest.req)) return;
  if (newest && isBodyBroken(error, newest)) {
    refuseBody(newest, edge);
    return;
  }
  if (newest) {
    // What has been written is let out: it may be the answer to this very request, whose head was read before it went wrong.
    socket.destroySoon();
    return;
  }
  answerBare(
    socket,
    edge,
    { code: 'invalid_request', message: REASONS[error.code ?? ''] ?? 'The request is not HTTP.' },
    originLines(edge.origins, error.rawPacket),
  );
}

/** The parser failed inside the body of this request, and its answer has not begun. Errors of the connection have other codes. */
const isBodyBroken = ({ code = '' }: ParseError, { req, headersSent }: ServerResponse): boolean =>
  code.startsWith('HPE_') && !req.complete && !headersSent;

/** RFC 9112 §7.1: a request whose chunks are malformed. Its route finds the answer written, and the connection closed. */
function refuseBody(response: ServerResponse, { newRequestId, count }: Edge): void {
  refused.add(response.req);
  response.shouldKeepAlive = false;
  count('invalid_request');
  sendError(response, newRequestId(), new ServiceError('invalid_request', 'The chunks of the body are malformed.'));
}

/** CONNECT (RFC 9110 §9.3.6) asks for a tunnel; this is an origin. */
export function answerConnect(socket: Duplex, busy: boolean, edge: Edge): void {
  // The parser has let go of the connection, and with it of its errors.
  socket.on('error', () => socket.destroy());
  if (busy) socket.destroy();
  else
    answerBare(
      socket,
      edge,
      { code: 'method_not_allowed', message: 'CONNECT is not for this server.' },
      // No page can ask for one.
      ['allow: POST, GET, HEAD'],
    );
}

function answerBare(socket: Duplex, { newRequestId, count }: Edge, error: ErrorFields, more: readonly string[]): void {
  const body = JSON.stringify({ error: errorObject(error) });
  const { status } = errorKinds[error.code];
  count(error.code);
  const head = [
    `HTTP/1.1 ${status} ${status === 400 ? 'Bad Request' : 'Method Not Allowed'}`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${newRequestId()}`,
    `server: ${SERVER}`,
    `date: ${new Date().toUTCString()}`,
    'connection: close',
    ...more,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
