// A call to the store that is not answered in time is `unavailable` to its caller; what Redis does with it later is harmless by design.
import { ServiceError } from '@inference-proxy/contracts';
import { storeError } from './store-error.ts';

/**
 * The promise's value, or `ServiceError` `unavailable` after `ms`, or `storeError` when Redis refused or lost the call.
 * The call itself goes on: a late answer is dropped.
 */
export function withinLimit<T>(call: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // To a process that stood still the answer may have come long since: it is read in this turn of the loop, before the immediates.
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
