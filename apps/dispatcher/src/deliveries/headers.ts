// Contract 4: the headers of a delivery, with a timestamp and signatures of their own for every attempt.
import { type SealedBox, serviceSignature, standardSignature } from '@inference-proxy/crypto';
import type { DeliveryTask } from './records.ts';

/**
 * @param body the exact bytes that are sent
 * @param box opens the delivery's secret, which is wiped as soon as it has signed
 * @param now Unix milliseconds
 * @param version of this service, for `User-Agent`
 * @throws UnsealError where the secret cannot be opened with the keys at hand: nothing is sent unsigned
 */
export function deliveryHeaders(
  task: DeliveryTask,
  body: Buffer,
  box: SealedBox,
  now: number,
  version: string,
): Record<string, string> {
  const timestamp = Math.floor(now / 1000);
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': `inference-proxy/${version}`,
    'X-Request-Id': task.runId,
    'X-Service-Webhook-Timestamp': String(timestamp),
    'webhook-id': task.deliveryId,
    'webhook-timestamp': String(timestamp),
  };
  if (task.secret === undefined) return headers;
  const secret = box.open(task.secret, task.runId);
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
