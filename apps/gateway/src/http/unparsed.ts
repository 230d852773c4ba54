// Contract 2: answers requests that Node's parser rejects or passes on as a bare connection. They have no response object.
// The answer has the form of contract 2, or the connection is closed.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ErrorCode, type ErrorFields, errorKinds, errorObject, ServiceError } from '@inference-proxy/contracts';
import { JSON_TYPE, SERVER, sendError } from './answer.ts';
import { type Origins, originLines } from './cors.ts';

const REASONS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not arrive in time.',
  HPE_HEADER_OVERFLOW: 'The headers are too large.',
};

/** The parts of the server that answers without a route need: ids, the allowed origins, and the count of errors. */
export interface UnroutedParts {
  readonly origins: Origins;
  readonly newRequestId: () => string;
  /** Called with the code of every error that is answered here. */
  readonly count: (code: ErrorCode) => void;
}

export interface ParseError extends Error {
  readonly code?: string;
  /** The bytes that the parser was reading when it failed. */
  readonly rawPacket?: Buffer;
}

/** Requests that were rejected because of their body. */
const refused = new WeakSet<IncomingMessage>();

/**
 * Answers an error of the parser or the connection.
 *
 * @param newest the unfinished response to the newest request of the connection. No other answer can be written inside this response
 */
export function answerUnparsed(
  error: ParseError,
  socket: Socket,
  newest: ServerResponse | undefined,
  parts: UnroutedParts,
): void {
  // A connection without bytes has sent no request. An answer on it could be taken for the answer to a request on its way.
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0) {
    socket.destroy();
    return;
  }
  if (newest && refused.has(newest.req)) return;
  if (newest && isBodyBroken(error, newest)) {
    refuseBody(newest, parts);
    return;
  }
  if (newest) {
    // Written bytes are sent first. They may answer this request, because its head was read before the error.
    socket.destroySoon();
    return;
  }
  answerBare(
    socket,
    parts,
    { code: 'invalid_request', message: REASONS[error.code ?? ''] ?? 'The request is not HTTP.' },
    originLines(parts.origins, error.rawPacket),
  );
}

/** Returns whether the parser failed inside this request's body before the answer began. Connection errors have other codes. */
const isBodyBroken = ({ code = '' }: ParseError, { req, headersSent }: ServerResponse): boolean =>
  code.startsWith('HPE_') && !req.complete && !headersSent;

/** Rejects a request with malformed chunks (RFC 9112 §7.1). Its route finds the answer written and the connection closed. */
function refuseBody(response: ServerResponse, { newRequestId, count }: UnroutedParts): void {
  refused.add(response.req);
  response.shouldKeepAlive = false;
  count('invalid_request');
  sendError(response, newRequestId(), new ServiceError('invalid_request', 'The chunks of the body are malformed.'));
}

/** Answers CONNECT (RFC 9110 §9.3.6), which asks for a tunnel. This server is an origin and opens no tunnels. */
export function answerConnect(socket: Duplex, busy: boolean, parts: UnroutedParts): void {
  // The parser has released the connection and no longer handles its errors.
  socket.on('error', () => socket.destroy());
  if (busy) socket.destroy();
  else
    answerBare(
      socket,
      parts,
      { code: 'method_not_allowed', message: 'This server does not support CONNECT.' },
      // Pages cannot send CONNECT, so the answer has no CORS headers.
      ['allow: POST, GET, HEAD'],
    );
}

function answerBare(
  socket: Duplex,
  { newRequestId, count }: UnroutedParts,
  error: ErrorFields,
  more: readonly string[],
): void {
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
