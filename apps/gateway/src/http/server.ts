// The HTTP server: Fastify under Nest on a server of ours, with the parts that would answer by themselves made to answer in contract 2's shape.
import {
  createServer,
  METHODS,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RunId } from '@inference-proxy/contracts';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Origins } from './cors.ts';
import { answeredAtTheEdge, type Edge } from './edges.ts';
import type { ErrorFilter } from './error.filter.ts';
import { answerConnect, answerUnparsed } from './unparsed.ts';

/** Balancers keep connections for 60 s; whoever closes first must be they, or a call is lost in between. */
const IDLE_MS = 75_000;
const PROBE_AFTER_MS = 30_000;
/** How much longer than a call's body (calls/bodies.ts) a request may take to arrive, so that the call can be told. */
const SLACK_MS = 5000;
const LONGEST_CHECK_MS = 15_000;
/** Than which no head is longer (Node's own limit): the first segment of a path below an app may be anything. */
const LONGEST_SEGMENT = 16 * 1024;

export interface ServerParts {
  readonly filter: ErrorFilter;
  readonly newRequestId: () => RunId;
  readonly origins: Origins;
  /** For a whole request to arrive, ms; a quarter of it for its head. An answer may take as long as it likes. */
  readonly requestMs: number;
  /** How long a reader may take no bytes of its answer, ms. */
  readonly stallMs: number;
}

/** Nest's adapter; `X-Request-Id` of every request is an id that a run may have. */
export function httpServer({ filter, newRequestId, origins, requestMs, stallMs }: ServerParts): FastifyAdapter {
  /** By connection: when the answer to its newest request is out, so are all others. */
  const newest = new WeakMap<Duplex, ServerResponse>();
  const unfinished = (socket: Duplex): ServerResponse | undefined => {
    const response = newest.get(socket);
    return response?.writableFinished === false ? response : undefined;
  };

  const edge: Edge = { origins, newRequestId, count: filter.count };

  function serverInFrontOf(route: RequestListener): Server {
    const server = createServer(limits(requestMs), (request, response) => {
      newest.set(request.socket, response);
      if (!answeredAtTheEdge(edge, request, response)) route(request, response);
    });
    // Node drops headers beyond a number silently; their size is limited anyway.
    server.maxHeadersCount = 0;
    // Node calls this when nothing has moved on a connection for that long. Bytes that a write under way has passed on count as movement.
    server.setTimeout(Math.ceil(stallMs), (socket) => {
      const response = newest.get(socket);
      const isWaitingForUs = response?.writableFinished === false && socket.writableLength === 0;
      // A request that does not arrive has limits of its own.
      if (response !== undefined && !isWaitingForUs) socket.destroy();
    });
    // `Expect: 100-continue` is answered when the body is wanted (calls/bodies.ts), not before the guard.
    const pass: RequestListener = (request, response) => server.emit('request', request, response);
    server.on('checkContinue', pass).on('checkExpectation', pass);
    server.on('connect', (_, socket) => answerConnect(socket, unfinished(socket) !== undefined, edge));
    // A caller that closes its side after the request is answered all the same; calls/departure.ts finds out whether it is there.
    return Object.assign(server, { httpAllowHalfOpen: true });
  }

  const adapter = new FastifyAdapter({
    genReqId: newRequestId,
    routerOptions: { maxParamLength: LONGEST_SEGMENT },
    serverFactory: serverInFrontOf,
    // Fastify's own 503 has another shape; `OpenCalls` refuses.
    return503OnClosing: false,
    skipMiddie: true,
    multipart: false,
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      filter.answer(error, request, reply),
    clientErrorHandler: (error: Error, socket: Socket) => answerUnparsed(error, socket, unfinished(socket), edge),
  });
  const fastify = adapter.getInstance();
  // A body is taken as a stream after the guard. Fastify would read it before, reject `__proto__` keys, and answer bad types by itself.
  for (const method of METHODS) {
    // Those two it has without a body already, and CONNECT is no method of a path.
    if (!['GET', 'HEAD', 'CONNECT'].includes(method)) {
      fastify.addHttpMethod(method, { hasBody: false, overrideExisting: true });
    }
  }
  return adapter;
}

const limits = (requestMs: number): ServerOptions => ({
  // Node takes whole milliseconds.
  headersTimeout: Math.ceil(requestMs / 4),
  requestTimeout: Math.ceil(requestMs) + SLACK_MS,
  connectionsCheckingInterval: Math.min(Math.ceil(requestMs / 4), LONGEST_CHECK_MS),
  keepAliveTimeout: IDLE_MS,
  keepAlive: true,
  keepAliveInitialDelay: PROBE_AFTER_MS,
  noDelay: true,
  // Node's own 400 has no body and no request id.
  requireHostHeader: false,
});
