// Contract 1 and 2: the HTTP server, Fastify under Nest. Answers that Node or Fastify would write by themselves get the form of contract 2.
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

/** Load balancers keep connections for 60 s. They must close first, because a call on a connection that the gateway closes is lost. */
const IDLE_MS = 75_000;
const PROBE_AFTER_MS = 30_000;
/** Extra time for a request beyond the time for a call's body (calls/bodies.ts), so that the gateway can answer a late body. */
const SLACK_MS = 5000;
const LONGEST_CHECK_MS = 15_000;
/** The longest head that Node accepts. The first segment of a path below an app may be any text. */
const LONGEST_SEGMENT = 16 * 1024;

export interface ServerParts {
  readonly filter: ErrorFilter;
  readonly newRequestId: () => RunId;
  readonly origins: Origins;
  /** Time for a whole request to arrive, ms; a quarter of this time for its head. The time of an answer has no limit. */
  readonly requestMs: number;
  /** Longest time in which a reader takes no bytes of its answer, ms. */
  readonly stallMs: number;
}

/** Returns Nest's adapter. `X-Request-Id` of every request is an id that a run may have. */
export function httpServer({ filter, newRequestId, origins, requestMs, stallMs }: ServerParts): FastifyAdapter {
  /** The newest response of each connection. When this response is sent, all earlier responses are sent. */
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
    // Node would silently drop headers beyond a number. Their size has its own limit.
    server.maxHeadersCount = 0;
    // Node calls this after that time without activity on a connection. Progress of a write counts as activity.
    server.setTimeout(Math.ceil(stallMs), (socket) => {
      const response = newest.get(socket);
      const isWaitingForUs = response?.writableFinished === false && socket.writableLength === 0;
      // A request that does not arrive has its own time limits.
      if (response !== undefined && !isWaitingForUs) socket.destroy();
    });
    // `Expect: 100-continue` is answered when the body is needed (calls/bodies.ts), after the guard.
    const pass: RequestListener = (request, response) => server.emit('request', request, response);
    server.on('checkContinue', pass).on('checkExpectation', pass);
    server.on('connect', (_, socket) => answerConnect(socket, unfinished(socket) !== undefined, edge));
    // A caller that closes its side after the request still gets its answer. http/open-calls.ts finds out whether the caller has left.
    return Object.assign(server, { httpAllowHalfOpen: true });
  }

  const adapter = new FastifyAdapter({
    genReqId: newRequestId,
    routerOptions: { maxParamLength: LONGEST_SEGMENT },
    serverFactory: serverInFrontOf,
    // Fastify's own 503 has another form. `OpenCalls` rejects calls of a stopping gateway.
    return503OnClosing: false,
    skipMiddie: true,
    multipart: false,
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      filter.answer(error, request, reply),
    clientErrorHandler: (error: Error, socket: Socket) => answerUnparsed(error, socket, unfinished(socket), edge),
  });
  const fastify = adapter.getInstance();
  // The body is read as a stream after the guard. Fastify would read it earlier, reject `__proto__` keys, and answer wrong types by itself.
  for (const method of METHODS) {
    // Fastify already treats GET and HEAD as bodiless. CONNECT is no method of a path.
    if (!['GET', 'HEAD', 'CONNECT'].includes(method)) {
      fastify.addHttpMethod(method, { hasBody: false, overrideExisting: true });
    }
  }
  return adapter;
}

const limits = (requestMs: number): ServerOptions => ({
  // Node accepts only whole milliseconds.
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
