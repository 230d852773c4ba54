// Contract 1, "Idempotency": the key of a call, and the fingerprint of its request. Only their hashes leave the gateway.
import { createHash } from 'node:crypto';
import type { NewRun } from '@inference-proxy/store';
import { refused, textHeaderOnce } from '../http/request-head.ts';

const HEADER = 'Idempotency-Key';
const MAX_KEY_BYTES = 255;

/**
 * Returns the key in a request's headers. The key is opaque: quotes belong to it.
 *
 * @param rawHeaders names and values as received, because Node joins repeated headers
 * @throws ServiceError `invalid_request` if the key is empty, doubled or over 255 bytes
 */
export function idempotencyKeyOf(rawHeaders: readonly string[]): string | undefined {
  const key = textHeaderOnce(rawHeaders, HEADER);
  // Node reads header bytes as Latin-1, so each character is one byte.
  if (key !== undefined && key.length > MAX_KEY_BYTES) throw refused(HEADER, `is over ${MAX_KEY_BYTES} bytes`);
  return key;
}

/** The parts of a call that two requests with the same key must share. */
export interface IdentifiedCall {
  readonly project: string;
  readonly app: string;
  readonly fn: string;
  readonly method: string;
  readonly path: string;
  readonly webhook?: { readonly url: string };
}

/**
 * Returns the key with its scope, and the fingerprint of the request, both hashed.
 * A NUL separates the parts. No part can contain a NUL, so two different lists of parts never give the same text.
 */
export function idempotencyOf(call: IdentifiedCall, key: string, body: Buffer): NonNullable<NewRun['idempotency']> {
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
