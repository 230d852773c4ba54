// webhooks.md "Isolation": what an attempt says of its receiver. Only connection errors, timeouts, 429 and 5xx count against it.
import type { HostOutcome } from '@inference-proxy/store';
import type { AttemptRecord } from '../deliveries/records.ts';

const BAD: ReadonlySet<string | undefined> = new Set(['dns', 'refused', 'tls', 'timeout', 'reset']);

/** `none` for what was never sent, and for an answer that is no HTTP: it says neither that the receiver works nor that it is down. */
export function hostOutcome({ status, errorClass }: AttemptRecord): HostOutcome {
  if (status !== undefined) return status === 429 || status >= 500 ? 'bad' : 'good';
  return BAD.has(errorClass) ? 'bad' : 'none';
}
