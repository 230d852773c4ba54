// The HTTP server: Fastify under Nest, with the parts that would answer by themselves made to answer in contract 2's shape.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { errorObject, type RunId, ServiceError } from '@inference-proxy/contracts';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OpenCalls } from '../calls/departure.ts';
import { JSON_TYPE, SERVER } from './answer.ts';
import type { ErrorFilter } from './error.filter.ts';

/** For a whole request to arrive. An answer may take as long as it likes. */
const REQUEST_MS = 120_000;
const HEADERS_MS = 30_000;
/** Balancers keep connections for 60 s; whoever closes first must be they, or a call is lost in between. */
const IDLE_MS = 75_000;
const PROBE_AFTER_MS = 30_000;
/** Longer than any name; what is longer is nothing of ours. */
const LONGEST_SEGMENT = 512;

export interface ServerParts {
  readonly filter: ErrorFilter;
  readonly openCalls: OpenCalls;
  readonly newRequestId: () => RunId;
}

/** Nest's adapter; `X-Request-Id` of every request is an id that a run may have. */
export function httpServer({ filter, openCalls, newRequestId }: ServerParts): FastifyAdapter {
  const adapter = new FastifyAdapter({
    genReqId: newRequestId,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: IDLE_MS,
    routerOptions: { maxParamLength: LONGEST_SEGMENT },
    http: {
      headersTimeout: HEADERS_MS,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
      noDelay: true,
      // Node's own 400 has no body and no request id.
      requireHostHeader: false,
    },
    // Fastify's own 503 has another shape; `OpenCalls` refuses.
    return503OnClosing: false,
    skipMiddie: true,
    multipart: false,
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      filter.answer(error, request, reply),
    clientErrorHandler: (error: Error, socket: Socket) =>
      answerMalformed(error, socket, openCalls.busy(socket), newRequestId()),
  });
  const fastify = adapter.getInstance();
  // A body is taken as a stream after the guard. Fastify would read it before, reject `__proto__` keys, and answer bad types by itself.
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY']) {
    if (fastify.supportedMethods.includes(method)) {
      fastify.addHttpMethod(method, { hasBody: false, overrideExisting: true });
    }
  }
  fastify.addHook('onRequest', (request, _reply, done) => done(hostError(request.raw)));
  // `Expect: 100-continue` is answered when the body is wanted (calls/bodies.ts), not before the guard.
  const pass = (request: IncomingMessage, response: ServerResponse): boolean =>
    fastify.server.emit('request', request, response);
  fastify.server.on('checkContinue', pass).on('checkExpectation', pass);
  return adapter;
}

/** RFC 9112, section 3.2: one `Host`, also where nobody looks at it. */
function hostError({ httpVersion, headersDistinct }: IncomingMessage): ServiceError | undefined {
  const hosts = headersDistinct.host?.length ?? (httpVersion === '1.1' ? 0 : 1);
  return hosts === 1 ? undefined : new ServiceError('invalid_request', 'Expected one `Host` header.');
}

/** What is no HTTP has no request and no response. Inside another call's answer nothing can be said. */
function answerMalformed(error: Error & { code?: string }, socket: Socket, busy: boolean, requestId: RunId): void {
  if (error.code === 'ECONNRESET' || !socket.writable || busy) {
    socket.destroy();
    return;
  }
  const message =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? 'The request did not arrive in time.'
      : error.code === 'HPE_HEADER_OVERFLOW'
        ? 'The headers are too large.'
        : 'The request is not HTTP.';
  const body = JSON.stringify({ error: errorObject({ code: 'invalid_request', message }) });
  const head = [
    'HTTP/1.1 400 Bad Request',
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    `server: ${SERVER}`,
    `date: ${new Date().toUTCString()}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
