// Contract 1 and 3 (`ids`, `events`): reads the form of the stream from a query. Pure.
import type { Query } from '../http/request-head.ts';

/**
 * - `plain`: only items
 * - `ids`: every event has an id, for resuming
 * - `rich`: named and numbered events, also for states and log lines
 */
export type StreamForm = 'plain' | 'ids' | 'rich';

/** Returns the form that a query asks for. @throws ServiceError `invalid_request` */
export function streamFormOf(query: Query): StreamForm {
  if (query.word('events', ['full']) !== undefined) return 'rich';
  return query.flag('ids') ? 'ids' : 'plain';
}
