// Contract 1, "Custom runtimes": the head of a server's answer on our response.
import type { ServerResponse } from 'node:http';
import type { AnswerHead, HeaderPair } from '@inference-proxy/contracts';

/** Lists to which others have been added on the way (http/cors.ts): both count. */
const JOINED: ReadonlySet<string> = new Set(['vary', 'access-control-expose-headers']);

/** What is ours to say, or follows from how the body is written. */
const OURS: ReadonlySet<string> = new Set(['x-request-id', 'content-length', 'idempotency-replayed']);

/** Which pages may read an answer, and what of it (fetch.spec.whatwg.org, "CORS protocol"). */
const CORS = 'access-control-';

export interface HeadRules {
  /** `CORS_ORIGINS` is set, so it alone decides which pages may read the answer. Otherwise the server decides. */
  readonly corsIsOurs: boolean;
  /** The server's `Content-Length` tells of a body that is not there (RFC 9110 §8.6). */
  readonly bodiless: boolean;
}

/** Puts status and headers of a server's answer on the response, which is not written yet. */
export function putHead(raw: ServerResponse, requestId: string, head: AnswerHead, rules: HeadRules): void {
  raw.statusCode = head.status;
  const already = new Set(raw.getHeaderNames());
  for (const [name, value] of head.headers) {
    const lower = name.toLowerCase();
    if (lower === 'content-length' ? !rules.bodiless : OURS.has(lower)) continue;
    if (rules.corsIsOurs && lower.startsWith(CORS) && !already.has(lower)) continue;
    if (!already.has(lower)) raw.appendHeader(name, value);
    else if (JOINED.has(lower)) raw.setHeader(lower, joined(raw, lower, value));
  }
  raw.setHeader('x-request-id', requestId);
}

/** One line, as caches and browsers read best. */
const joined = (raw: ServerResponse, name: HeaderPair[0], value: string): string =>
  `${[raw.getHeader(name)].flat().join(', ')}, ${value}`;
