// Contract 2: converts thrown errors into answers, in one place.
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { type ErrorCode, ServiceError } from '@inference-proxy/contracts';
import { type LineLog, type Logger, repeatedLines } from '@inference-proxy/platform';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asServiceError, sendError } from './answer.ts';

/** The methods of each path. The first match counts. */
const METHODS: readonly (readonly [RegExp, string])[] = [
  [/^\/v4\/[^/?]+\/runs\/[^/?]+\/(cancel|deliveries\/[^/?]+\/redeliver)(\?|$)/, 'POST'],
  [/^\/v4\/[^/?]+\/deliveries\/redeliver(\?|$)/, 'POST'],
  [/^\/v4\/[^/?]+\/runs(\/[^/?]+(\/(stream|logs|deliveries|parameters))?)?(\?|$)/, 'GET, HEAD'],
  [/^\/v4\/[^/?]+\/apps\/[^/?]+\/versions(\/[^/?]+\/activate)?(\?|$)/, 'POST'],
  [/^\/v4\/[^/?]+\/apps\/[^/?]+\/versions\/[^/?]+(\/log)?(\?|$)/, 'GET, HEAD'],
  [/^\/v4\/[^/?]+\/apps\/[^/?]+(\?|$)/, 'GET, HEAD, DELETE'],
  [/^\/v4\/[^/?]+\/(apps|audit)(\?|$)/, 'GET, HEAD'],
  [/^\/v4\/[^/?]+(\/(deliveries(\/(count|receivers(\/[^/?]+)?))?|stats))?(\?|$)/, 'GET, HEAD'],
  [
    /^\/(healthz|readyz|docs(\/[^/?]+)?|console(\/[^?]*)?|openapi\.json|openapi\/[^/?]+\/[^/?]+\.json)(\?|$)/,
    'GET, HEAD',
  ],
  [/^\/v4\/[^/?]+\/[^/?]+\/[^/?]+(\/(chat\/completions|completions|embeddings|responses))?(\?|$)/, 'POST'],
  [/^\/v4\/[^/?]+\/[^/?]+\/[^/?]+\/models(\/[^/?]+)?(\?|$)/, 'GET, HEAD'],
];

/** Returns the error of a request without a route: another method on a known path, or an unknown path. */
export function unrouted(request: Pick<IncomingMessage, 'method' | 'url'>): {
  error: ServiceError;
  headers?: { allow: string };
} {
  const { method, url = '' } = request;
  const allow = METHODS.find(([path]) => path.test(url))?.[1];
  if (allow === undefined || allow.split(', ').includes(method ?? '')) {
    return { error: new ServiceError('not_found', `There is nothing at ${method} ${url.split('?', 1)[0]}.`) };
  }
  return {
    error: new ServiceError('method_not_allowed', `The method ${method} is not allowed on this path.`),
    headers: { allow },
  };
}

/** Returns the status of an error of Nest or Fastify. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof HttpException) return error.getStatus();
  if (error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number') return error.statusCode;
  return undefined;
}

@Catch()
export class ErrorFilter implements ExceptionFilter {
  /** Limits the lines of errors with one known cause, such as a failing script. Every call may meet such an error. */
  readonly #repeated: Pick<LineLog, 'error'>;

  readonly #logger: Logger;

  /** @param count called with the code of every error that is answered here */
  constructor(
    logger: Logger,
    readonly count: (code: ErrorCode) => void,
  ) {
    this.#logger = logger;

    this.#repeated = repeatedLines(logger, { againMs: 1_000, summary: false });
  }

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(thrown, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  /** Answers on the raw response, also for errors before a route is found. */
  answer(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    if (!reply.sent) reply.hijack();
    const status = statusOf(thrown);
    if (thrown instanceof ServiceError) {
      if (thrown.code === 'internal') this.#repeated.error({ err: thrown, runId: request.id }, 'internal error');
      this.#send(request, reply, thrown);
    } else if (status === 404) {
      const { error, headers } = unrouted(request.raw);
      this.#send(request, reply, error, headers);
    } else if (status !== undefined && status >= 400 && status < 500) {
      this.#send(request, reply, new ServiceError('invalid_request', 'The request is malformed.'));
    } else {
      this.#logger.error({ err: thrown, runId: request.id }, 'internal error');
      this.#send(request, reply, asServiceError(thrown));
    }
  }

  #send(request: FastifyRequest, reply: FastifyReply, error: ServiceError, headers?: OutgoingHttpHeaders): void {
    this.count(error.code);
    sendError(reply.raw, request.id, error, headers);
  }
}
