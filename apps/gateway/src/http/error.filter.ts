// Contract 2: converts thrown errors into answers, in one place.
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { type ErrorCode, ServiceError } from '@inference-proxy/contracts';
import { type LineLog, type Logger, repeatedLines } from '@inference-proxy/platform';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asServiceError, sendError } from './answer.ts';
import { isOpenAiPath } from './openai-errors.ts';
import { pathForms } from './path-form.ts';

const hasConsoleForm = pathForms('/console');
const hasCallForm = pathForms('/v4/*/*/*');

/** The methods of each path. The first match counts. */
const METHODS: readonly (readonly [(target: string) => boolean, string])[] = [
  [pathForms('/v4/*/runs/*/cancel', '/v4/*/runs/*/deliveries/*/redeliver', '/v4/*/deliveries/redeliver'), 'POST'],
  [pathForms('/v4/*/runs', '/v4/*/runs/*', '/v4/*/runs/*/stream', '/v4/*/runs/*/logs'), 'GET, HEAD'],
  [pathForms('/v4/*/runs/*/deliveries', '/v4/*/runs/*/parameters'), 'GET, HEAD'],
  [pathForms('/v4/*/apps/*/versions', '/v4/*/apps/*/versions/*/activate'), 'POST'],
  [pathForms('/v4/*/apps/*/versions/*', '/v4/*/apps/*/versions/*/log'), 'GET, HEAD'],
  [pathForms('/v4/*/apps/*'), 'GET, HEAD, DELETE'],
  [pathForms('/v4/*', '/v4/*/apps', '/v4/*/audit', '/v4/*/stats', '/v4/*/deliveries'), 'GET, HEAD'],
  [pathForms('/v4/*/deliveries/count', '/v4/*/deliveries/receivers', '/v4/*/deliveries/receivers/*'), 'GET, HEAD'],
  [pathForms('/healthz', '/readyz', '/.well-known/webhook-keys'), 'GET, HEAD'],
  [pathForms('/docs', '/docs/*', '/openapi.json', '/openapi/*/*.json'), 'GET, HEAD'],
  [(target) => target.startsWith('/console/') || hasConsoleForm(target), 'GET, HEAD'],
  [pathForms('/v4/*/*/*/models', '/v4/*/*/*/models/*'), 'GET, HEAD'],
  [(target) => isOpenAiPath(target) || hasCallForm(target), 'POST'],
];

/** Returns the error of a request without a route: another method on a known path, or an unknown path. */
export function unrouted(request: Pick<IncomingMessage, 'method' | 'url'>): {
  error: ServiceError;
  headers?: { allow: string };
} {
  const { method, url = '' } = request;
  const allow = METHODS.find(([has]) => has(url))?.[1];
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
