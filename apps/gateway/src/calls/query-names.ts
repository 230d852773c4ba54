// Contract 1, "Options of a call": rejects misspelt names of query parameters. Other unknown names are ignored. Pure.
import { ServiceError } from '@inference-proxy/contracts';
import type { Query } from '../http/request-head.ts';

/** The query parameters that the gateway reads in every call. They are not forwarded to custom runtimes. */
export const GATEWAY_PARAMETERS = ['webhookEndpoint', 'async', 'onDisconnect'];
/** The query parameters of contract 1, 3 and 5. */
const KNOWN = [...GATEWAY_PARAMETERS, 'ids', 'events', 'after', 'lastEventId', 'priority'];
/** Shorter names resemble too many other words. */
const SHORTEST = 4;
const MOST_DIFFERENCES = 2;

const compared = KNOWN.filter((name) => name.length >= SHORTEST);

/**
 * Checks the names in the query of a function call. The queries of custom runtimes belong to their servers and are not checked.
 *
 * @throws ServiceError `invalid_request` whose message contains the known name
 */
export function checkQueryNames(query: Query): void {
  for (const name of query.names()) {
    if (name.length < SHORTEST || KNOWN.includes(name)) continue;
    const meant = compared.find((known) => differences(name, known) <= MOST_DIFFERENCES);
    if (meant !== undefined)
      throw new ServiceError(
        'invalid_request',
        `The query parameter \`${name}\` is not known. Did you mean \`${meant}\`?`,
      );
  }
}

/**
 * Returns the number of letters to insert, delete or replace between two texts (Levenshtein).
 * If the lengths differ by more than two, the result is infinity.
 */
function differences(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MOST_DIFFERENCES) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let line = 1; line <= one.length; line++) {
    const next = [line];
    for (let at = 1; at <= other.length; at++) {
      const replaced = (row[at - 1] as number) + (one[line - 1] === other[at - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[at] as number) + 1, (next[at - 1] as number) + 1));
    }
    row = next;
  }
  return row[other.length] as number;
}
