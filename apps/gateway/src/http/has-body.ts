// RFC 9112 §6.3: the head of a request decides whether the request has a body.
import type { IncomingHttpHeaders } from 'node:http';

export const hasBody = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
