// RFC 9112 §6.3: a request has a body when its head says so.
import type { IncomingHttpHeaders } from 'node:http';

export const hasBody = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
