// Contract 1, "Disconnects": decides about a run whose last reader, on any gateway, has disconnected.
import { type Query, refused } from '../http/once.ts';
import { durationMs } from '../http/values.ts';

const PARAMETER = 'onDisconnect';

/** Milliseconds without a reader after which the run is cancelled (0: at once, `cancel`), or `continue`. */
export type OnDisconnect = number | 'continue';

/**
 * Returns the value of `onDisconnect` in a query, or undefined if the query has none.
 *
 * @throws ServiceError `invalid_request`
 */
export function onDisconnectOf(query: Query): OnDisconnect | undefined {
  const value = query.once(PARAMETER);
  if (value === undefined || value === 'continue') return value;
  const ms = value === 'cancel' ? 0 : durationMs(value);
  if (ms === undefined) throw refused(PARAMETER, 'must be `cancel`, `continue` or a number of seconds');
  return ms;
}
