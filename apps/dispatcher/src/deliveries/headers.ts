// Contract 4, "Signatures": the headers of a delivery. Each attempt has a new timestamp and new signatures.
import { type SealedBox, serviceSignature, standardSignature } from '@inference-proxy/crypto';
import type { DeliveryTask } from '@inference-proxy/store';

export interface HeaderOptions {
  /** Unix milliseconds. */
  readonly now: number;
  /** The version of this service, for `User-Agent`. */
  readonly version: string;
  /** W3C Trace Context, if the delivery has one. */
  readonly traceparent: string | undefined;
}

const SIGNED = ['X-Service-Webhook-Signature', 'webhook-signature'];
/** A signature without its value. */
const WITHHELD = 'v1,…';

/** Returns the headers for the delivery log. The values of signatures are withheld, because a reader could send the delivery again with them. */
export const shownHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, SIGNED.includes(name) ? WITHHELD : value]));

/**
 * Returns the headers of one attempt.
 *
 * @param body the exact bytes that are sent
 * @param box opens the delivery's secret; the secret is wiped after signing
 * @throws UnsealError if no key opens the secret or the delivery was changed, so that no delivery is sent unsigned
 */
export function deliveryHeaders(
  task: DeliveryTask,
  body: Buffer,
  box: SealedBox,
  { now, version, traceparent }: HeaderOptions,
): Record<string, string> {
  const timestamp = Math.floor(now / 1000);
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': `inference-proxy/${version}`,
    'X-Request-Id': task.runId,
    'X-Service-Webhook-Timestamp': String(timestamp),
    'webhook-id': task.deliveryId,
    'webhook-timestamp': String(timestamp),
    ...(traceparent !== undefined && { traceparent }),
  };
  if (task.secret === undefined) return headers;
  const secret = box.open(task.secret, task);
  try {
    return {
      ...headers,
      'X-Service-Webhook-Signature': serviceSignature(secret, task.runId, timestamp, body),
      'webhook-signature': standardSignature(secret, task.deliveryId, timestamp, body),
    };
  } finally {
    secret.fill(0);
  }
}
