// Contract 4, "Signatures": the headers of a delivery. Each attempt has a new timestamp and new signatures.
import { type SealedBox, serviceSignature, standardSignature, type WebhookKeys } from '@inference-proxy/crypto';
import type { DeliveryTask } from '@inference-proxy/store';

export interface HeaderOptions {
  /** Unix milliseconds. */
  readonly now: number;
  /** The version of this service, for `User-Agent`. */
  readonly version: string;
  /** W3C Trace Context, if the delivery has one. */
  readonly traceparent: string | undefined;
}

/** What signs a delivery. */
export interface Signers {
  /** Opens the delivery's secret. */
  readonly box: SealedBox;
  /** Sign without a secret. */
  readonly keys: WebhookKeys;
}

const SIGNED = ['X-Service-Webhook-Signature', 'webhook-signature'];
/** The scheme and the value of a signature. */
const SIGNATURE = /(v1a?),[^ ]+/g;

/** Returns the headers for the delivery log. The values of signatures are withheld, because a reader could send the delivery again with them. */
export const shownHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      SIGNED.includes(name) ? value.replace(SIGNATURE, '$1,…') : value,
    ]),
  );

/**
 * Resolves with the headers of one attempt. The delivery's secret is wiped after signing.
 *
 * @param body the exact bytes that are sent
 * @throws UnsealError if no key opens the secret or the delivery was changed, so that no delivery is sent unsigned
 */
export async function deliveryHeaders(
  task: DeliveryTask,
  body: Buffer,
  { box, keys }: Signers,
  { now, version, traceparent }: HeaderOptions,
): Promise<Record<string, string>> {
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
  const withSecret = task.secret === undefined ? undefined : secretSignatures(task.secret, task, timestamp, body, box);
  const asymmetric = await keys.sign(task.deliveryId, timestamp, body);
  if (withSecret === undefined) return { ...headers, 'webhook-signature': asymmetric };
  return {
    ...headers,
    'X-Service-Webhook-Signature': withSecret.service,
    'webhook-signature': `${withSecret.standard} ${asymmetric}`,
  };
}

function secretSignatures(sealed: string, task: DeliveryTask, timestamp: number, body: Buffer, box: SealedBox) {
  const secret = box.open(sealed, task);
  try {
    return {
      service: serviceSignature(secret, task.runId, timestamp, body),
      standard: standardSignature(secret, task.deliveryId, timestamp, body),
    };
  } finally {
    secret.fill(0);
  }
}
