// Contract 1 (`Idempotency-Key`): the key of a call, and what tells one request under it from another. Both leave the gateway as hashes.
import { createHash } from 'node:crypto';
import { ServiceError } from '@inference-proxy/contracts';
import type { NewRun } from '@inference-proxy/store';
import type { CallRequest } from './call-request.ts';

const HEADER = 'idempotency-key';
const MAX_KEY_BYTES = 255;

/**
 * The key in a request's headers. Opaque: quotes, where there are any, belong to it.
 *
 * @param rawHeaders names and values as received: Node joins what is given twice
 * @throws ServiceError `invalid_request` when it is empty, doubled or over 255 bytes
 */
export function idempotencyKeyOf(rawHeaders: readonly string[]): string | undefined {
  const [key, ...more] = rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === HEADER,
  );
  if (key === undefined) return undefined;
  if (more.length > 0) throw new ServiceError('invalid_request', 'Idempotency-Key is given more than once.');
  if (key.trim() === '') throw new ServiceError('invalid_request', 'Idempotency-Key is empty.');
  // Node reads header bytes as Latin-1: a character is a byte.
  if (key.length > MAX_KEY_BYTES) {
    throw new ServiceError('invalid_request', `Idempotency-Key is over ${MAX_KEY_BYTES} bytes.`);
  }
  return key;
}

/** Who holds the key, and for which request. No part can hold a NUL, so no two lists of parts read alike. */
export function idempotencyOf(call: CallRequest, key: string, body: Buffer): NonNullable<NewRun['idempotency']> {
  const { project, app, fn, method, path, webhook } = call;
  return {
    key: hash(project, app, fn, key),
    fingerprint: hash(method, path, webhook?.url ?? '', body),
  };
}

function hash(...parts: readonly (string | Buffer)[]): string {
  const sum = createHash('sha256');
  for (const part of parts) sum.update(part).update('\0');
  return sum.digest('base64url');
}
