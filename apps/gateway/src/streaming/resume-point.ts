// Contract 3 and 5 (`Last-Event-ID`, WHATWG HTML §9.2.4): reads the event after which a stream resumes. Pure.
import { headerOnce, type Query, refused } from '../http/request-head.ts';

const HEADER = 'Last-Event-ID';
/** No run has more than a quadrillion items, and a double is exact up to that number. */
const NUMBER = /^\d{1,15}$/;

/**
 * Returns the number of the reader's last event, or `undefined` if the request names no event.
 *
 * The header takes precedence, because an EventSource that reconnects repeats the query of its first request.
 * `lastEventId` is the parameter of clients that reconnect with a new request.
 *
 * @param rawHeaders names and values as received
 * @throws ServiceError `invalid_request`
 */
export function resumePoint(query: Query, rawHeaders: readonly string[]): number | undefined {
  // An empty header means that there is no last event: an EventSource begins with the empty string.
  const headerText = headerOnce(rawHeaders, HEADER) || undefined;
  const [header, after, lastEventId] = [
    numberOf(HEADER, headerText),
    numberOf('after', query.once('after')),
    numberOf('lastEventId', query.once('lastEventId')),
  ];
  return header ?? after ?? lastEventId;
}

function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!NUMBER.test(text)) {
    throw refused(name, 'must be the id of an event of this stream, a whole number');
  }
  return Number(text);
}
