// Contract 1, "Custom runtimes": writes the head of a server's answer into the gateway's response.
import type { ServerResponse } from 'node:http';
import type { AnswerHead, HeaderPair } from '@inference-proxy/contracts';

/** Lists to which the gateway has already added values (http/cors.ts). The values of both count. */
const JOINED: ReadonlySet<string> = new Set(['vary', 'access-control-expose-headers']);

/** Headers that the gateway sets, or that follow from the way the body is written. */
const GATEWAY_HEADERS: ReadonlySet<string> = new Set(['x-request-id', 'content-length', 'idempotency-replayed']);

/** Headers that decide which pages may read which parts of an answer (fetch.spec.whatwg.org, "CORS protocol"). */
const CORS = 'access-control-';

export interface HeadRules {
  /** `CORS_ORIGINS` is set, so it alone decides which pages may read the answer. Otherwise the server decides. */
  readonly corsIsOurs: boolean;
  /** The answer has no body, so the server's `Content-Length` does not describe sent bytes (RFC 9110 §8.6). */
  readonly bodiless: boolean;
}

/** Sets status and headers of a server's answer on a response that is not written yet. */
export function putHead(raw: ServerResponse, requestId: string, head: AnswerHead, rules: HeadRules): void {
  raw.statusCode = head.status;
  const already = new Set(raw.getHeaderNames());
  for (const [name, value] of head.headers) {
    const lower = name.toLowerCase();
    if (lower === 'content-length' ? !rules.bodiless : GATEWAY_HEADERS.has(lower)) continue;
    if (rules.corsIsOurs && lower.startsWith(CORS) && !already.has(lower)) continue;
    if (!already.has(lower)) raw.appendHeader(name, value);
    else if (JOINED.has(lower)) raw.setHeader(lower, joined(raw, lower, value));
  }
  raw.setHeader('x-request-id', requestId);
}

/** Joins the values in one line, which caches and browsers read best. */
const joined = (raw: ServerResponse, name: HeaderPair[0], value: string): string =>
  `${[raw.getHeader(name)].flat().join(', ')}, ${value}`;
