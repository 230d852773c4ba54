// Contract 1 and 3 (`ids`, `events`): reads the form of the stream from a query. Pure.
import { ServiceError } from '@inference-proxy/contracts';

/**
 * - `plain`: only items
 * - `numbered`: every event has an id, for resuming
 * - `full`: named and numbered events, also for states and log lines
 */
export type StreamForm = 'plain' | 'numbered' | 'full';

/** Returns the form that a query asks for. @throws ServiceError `invalid_request` */
export function streamFormOf(query: string): StreamForm {
  const parameters = /ids|events/.test(query) ? new URLSearchParams(query) : undefined;
  if (only(parameters, 'events', ['full']) !== undefined) return 'full';
  return only(parameters, 'ids', ['true', 'false']) === 'true' ? 'numbered' : 'plain';
}

function only(parameters: URLSearchParams | undefined, name: string, values: readonly string[]): string | undefined {
  const [value, ...more] = parameters?.getAll(name) ?? [];
  if (value === undefined) return undefined;
  if (more.length === 0 && values.includes(value)) return value;
  const allowed = values.map((each) => `\`${each}\``).join(' or ');
  throw new ServiceError('invalid_request', `\`${name}\` must be ${allowed}, and given once.`);
}
