// Bounds the time of a store call. A caller without an answer in time gets `unavailable`. A late execution in Redis does no harm, by design.
import { ServiceError } from '@inference-proxy/contracts';
import { storeError } from './store-error.ts';

/**
 * Returns the promise's value. Rejects with `unavailable` after `ms`, or with `storeError` if Redis refused or lost the call.
 * The call itself continues, and a late answer is dropped.
 */
export function withinLimit<T>(call: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // If the process stood still, the answer may have arrived long ago. It is read in this turn of the loop, before the immediates.
      setImmediate(() => reject(new ServiceError('unavailable', 'The run store did not answer in time.')));
    }, ms);
    call.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (cause: unknown) => {
        clearTimeout(timer);
        reject(storeError(cause));
      },
    );
  });
}
