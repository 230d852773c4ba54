// Contract 1, "Custom runtimes": the form of calls to an app's web server and of its answers.
import { encodeRequest, errorObject } from '@inference-proxy/contracts';
import type { Network } from '@inference-proxy/egress';
import type { CallProtocol } from '../calls/call-protocol.ts';
import { withCallOptions } from '../calls/call-request.ts';
import { envelopeAnswer } from '../calls/outcome.ts';
import type { Origins } from '../http/cors.ts';
import { Query } from '../http/request-head.ts';
import { ForwardedAnswer } from './forwarded-answer.ts';
import { forwardedHeaders } from './forwarded-headers.ts';
import { serverTarget } from './server-target.ts';

/**
 * @param trustedProxies proxies whose `X-Forwarded-*` headers are believed
 * @param origins `CORS_ORIGINS`; if it is empty, each server decides which pages may read its answers
 */
export function serverProtocol(trustedProxies: readonly Network[], origins: Origins): CallProtocol {
  const corsIsOurs = origins === '*' || origins.size > 0;
  return {
    readHead: (runId, path, head, webhooks) => {
      const { prefix, target, name } = serverTarget(head.url ?? '');
      return withCallOptions(runId, { ...path, function: name }, head, Query.of(head.url), webhooks, {
        path: prefix + target,
        stream: false,
        form: 'plain',
        forwarded: true,
      });
    },
    checkBody: (bytes) => ({ bytes }),
    readBody: (call, { forwardAuth = false }, body, request) => {
      const { prefix, target } = serverTarget(request.url ?? '');
      const headers = forwardedHeaders(request, { trustedProxies, forwardAuth, prefix });
      return { call, params: encodeRequest({ method: call.method, target, headers, body: body.bytes }) };
    },
    forwarded: (raw, reader, keepAlives, options) =>
      new ForwardedAnswer(raw, reader, keepAlives, { ...options, corsIsOurs }),
    answer: envelopeAnswer,
    error: errorObject,
  };
}
