// Contract 3 and 5 (`Last-Event-ID`, WHATWG HTML §9.2.4): reads the event after which a stream resumes, and opens that stream. Pure.
import { ServiceError } from '@inference-proxy/contracts';

/** No run has more than a quadrillion items, and a double is exact up to that number. */
const NUMBER = /^\d{1,15}$/;
/** Time after which an EventSource connects again, ms. */
const RETRY_MS = 1000;

/**
 * Returns the number of the reader's last event, or `undefined` if the request names no event.
 *
 * The header takes precedence, because an EventSource that reconnects repeats the query of its first request.
 * `lastEventId` is the parameter of clients that reconnect with a new request.
 *
 * @param rawHeaders names and values as received
 * @throws ServiceError `invalid_request`
 */
export function resumePoint(query: string, rawHeaders: readonly string[]): number | undefined {
  const parameters = new URLSearchParams(query);
  const [header, after, lastEventId] = [
    numberOf('Last-Event-ID', headerValue(rawHeaders)),
    numberOf('after', parameterValue(parameters, 'after')),
    numberOf('lastEventId', parameterValue(parameters, 'lastEventId')),
  ];
  return header ?? after ?? lastEventId;
}

/** Returns the first lines of a stream with ids. With them, a client that loses the connection before the first event can resume. */
export const openingLines = (after: number): Buffer => Buffer.from(`retry: ${RETRY_MS}\nid: ${after}\n\n`);

/** Returns the header's value. An empty header means that there is no last event: an EventSource begins with the empty string. */
function headerValue(rawHeaders: readonly string[]): string | undefined {
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'last-event-id');
  return onlyOne('Last-Event-ID', values) || undefined;
}

const parameterValue = (parameters: URLSearchParams, name: string): string | undefined =>
  onlyOne(name, parameters.getAll(name));

function onlyOne(name: string, [value, ...more]: readonly string[]): string | undefined {
  if (more.length > 0) throw new ServiceError('invalid_request', `\`${name}\` is given more than once.`);
  return value;
}

function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!NUMBER.test(text)) {
    throw new ServiceError('invalid_request', `\`${name}\` must be the id of an event of this stream, a whole number.`);
  }
  return Number(text);
}
