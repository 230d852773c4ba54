// Contract 4, "Isolation": the outcome of an attempt for its receiver's circuit. Only connection errors, timeouts, 429 and 5xx are failures.
import type { HostOutcome } from '@inference-proxy/store';
import type { AttemptRecord } from '../deliveries/records.ts';

const BAD: ReadonlySet<string | undefined> = new Set(['dns', 'refused', 'tls', 'timeout', 'reset']);

/** Returns `none` for an attempt that was not sent, and for an answer that is not HTTP: neither shows whether the receiver works. */
export function hostOutcome({ status, errorClass }: AttemptRecord): HostOutcome {
  if (status !== undefined) return status === 429 || status >= 500 ? 'bad' : 'good';
  return BAD.has(errorClass) ? 'bad' : 'none';
}
