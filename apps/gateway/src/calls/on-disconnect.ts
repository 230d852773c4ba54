// Contract 1, "Disconnects": decides about a run whose last reader, on any gateway, has disconnected.
import { ServiceError } from '@inference-proxy/contracts';

const PARAMETER = 'onDisconnect';
/** Whole or decimal seconds. Nine digits are over thirty years. */
const SECONDS = /^\d{1,9}(\.\d{1,3})?$/;

/** Milliseconds without a reader after which the run is cancelled (0: at once, `cancel`), or `continue`. */
export type OnDisconnect = number | 'continue';

/**
 * Returns the value of `onDisconnect` in a query, or undefined if the query has none.
 *
 * @throws ServiceError `invalid_request`
 */
export function onDisconnectOf(query: string): OnDisconnect | undefined {
  if (!query.includes(PARAMETER)) return undefined;
  const [value, ...more] = new URLSearchParams(query).getAll(PARAMETER);
  if (value === undefined) return undefined;
  if (more.length > 0) throw new ServiceError('invalid_request', '`onDisconnect` is given more than once.');
  if (value === 'cancel') return 0;
  if (value === 'continue') return value;
  if (SECONDS.test(value)) return Math.round(Number(value) * 1000);
  throw new ServiceError('invalid_request', '`onDisconnect` must be `cancel`, `continue` or a number of seconds.');
}
