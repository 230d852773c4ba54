// Contract 2: what Node's parser refuses, or hands over as a bare connection, has no response object. It is answered in the same shape, or closed.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ErrorFields, errorKinds, errorObject } from '@inference-proxy/contracts';
import { JSON_TYPE, SERVER } from './answer.ts';
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

/**
 * An error of the parser or the connection.
 *
 * @param busy whether an earlier request's answer is still to come or under way: inside it nothing can be said
 */
export function answerUnparsed(error: ParseError, socket: Socket, busy: boolean, edge: Edge): void {
  // A connection made ahead has asked nothing: what would be said on it could be taken for the answer to the request that is on its way.
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0) {
    socket.destroy();
    return;
  }
  if (busy) {
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
