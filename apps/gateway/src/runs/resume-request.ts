// Contract 5 and WHATWG HTML §9.2.4 (`Last-Event-ID`): from where on a run's stream is asked for, and how. Pure.

import { ServiceError } from '@inference-proxy/contracts';
import { accepts, type RequestHead } from '../calls/call-request.ts';
import { queryOf } from '../http/query.ts';
import { type StreamForm, streamFormOf } from '../streaming/stream-form.ts';

export interface ResumeRequest {
  /** Number of the last event that the reader has; absent where it has none, and starts with the run. */
  readonly after?: number;
  readonly form: Exclude<StreamForm, 'plain'>;
  readonly gzip: boolean;
}

/** No run has more items than a quadrillion, and a double counts that far. */
const NUMBER = /^\d{1,15}$/;

/**
 * The header wins over `?after=`: an EventSource that reconnects repeats the query it was made with, and knows better by then.
 *
 * @throws ServiceError `invalid_request`
 */
export function resumeRequest({ url = '', headers, rawHeaders }: RequestHead): ResumeRequest {
  const query = queryOf(url);
  const inQuery = new URLSearchParams(query).getAll('after');
  if (inQuery.length > 1) throw new ServiceError('invalid_request', '`after` is given more than once.');
  const asked = numberOf('after', inQuery[0]);
  const known = numberOf('Last-Event-ID', lastEventId(rawHeaders));
  const after = known ?? asked;
  return {
    ...(after !== undefined && { after }),
    form: streamFormOf(query) === 'full' ? 'full' : 'numbered',
    gzip: accepts(headers['accept-encoding'], ['gzip', 'x-gzip', '*']),
  };
}

/** An empty one says that there is none, as the standard's own default does. */
function lastEventId(rawHeaders: readonly string[]): string | undefined {
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'last-event-id');
  if (values.length > 1) throw new ServiceError('invalid_request', '`Last-Event-ID` is given more than once.');
  return values[0] === '' ? undefined : values[0];
}

function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!NUMBER.test(text)) {
    throw new ServiceError('invalid_request', `\`${name}\` must be the id of an event of this stream, a whole number.`);
  }
  return Number(text);
}
