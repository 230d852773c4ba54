// Contract 4, "Retries": makes one POST within time limits and returns its record. The verdict decides about a retry; the agent checks addresses.
import { isIP } from 'node:net';
import {
  AddressPolicy,
  ConnectError,
  type Connection,
  type ExchangeLimits,
  errorCode,
  type GuardedAgent,
  HeadTimeout,
} from '@inference-proxy/egress';
import type { AttemptRecord } from '@inference-proxy/store';
import { retryAfterSeconds } from './retry-schedule.ts';

/**
 * `unsigned`: no key opens the secret. `altered`: the secret or its delivery was changed in the store. In both cases nothing was sent.
 * `redirect`: a 3xx answer. The dispatcher does not follow it.
 */
export type ErrorClass =
  | 'dns'
  | 'refused'
  | 'blocked'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'bad_response'
  | 'redirect'
  | 'unsigned'
  | 'altered';

export const defaultLimits: ExchangeLimits = { headMs: 15_000, answerMs: 2000, answerBytes: 4096 };

/** Makes one attempt. The record holds every failure of the receiver; no failure rejects. */
export async function attempt(
  agent: GuardedAgent,
  url: URL,
  headers: Record<string, string>,
  body: Buffer,
  limits: ExchangeLimits,
): Promise<AttemptRecord> {
  const at = Date.now();
  const begun = performance.now();
  let connection = agent.connection(url);
  const request = { method: 'POST', path: `${url.pathname}${url.search}`, headers, body } as const;
  const done = (result: Partial<AttemptRecord>): AttemptRecord => ({
    at,
    durationMs: Math.round(performance.now() - begun),
    ...(connection.address !== undefined && { address: connection.address }),
    ...result,
  });
  try {
    const wasKept = connection.reused;
    const response = await connection.exchange(request, limits).catch((error: unknown) => {
      // The receiver may have closed a kept connection at the moment of its use. The attempt repeats the request once on a new connection.
      if (!wasKept || failure(error).errorClass !== 'reset') throw error;
      agent.discard(connection);
      connection = agent.connection(url, { fresh: true });
      const left = limits.headMs - (performance.now() - begun);
      return connection.exchange(request, { ...limits, headMs: Math.max(1, left) });
    });
    release(agent, connection, response.whole);
    const { status, headers: answered, start } = response;
    const [location] = [answered.location].flat();
    const [retryAfter] = [answered['retry-after']].flat();
    const retryAfterS = retryAfter === undefined ? undefined : retryAfterSeconds(retryAfter, Date.now());
    const redirected = status >= 300 && status <= 399;
    return done({
      status,
      ...(redirected && { errorClass: 'redirect' satisfies ErrorClass }),
      ...(redirected && location !== undefined && { location: location.slice(0, limits.answerBytes) }),
      ...(retryAfterS !== undefined && { retryAfterS }),
      ...(start.length > 0 && { answer: start.toString() }),
    });
  } catch (error) {
    agent.discard(connection);
    return done(failure(error));
  }
}

/** Keeps or discards a connection. Only a connection whose answer was read to the end can carry another exchange. */
function release(agent: GuardedAgent, connection: Connection, whole: boolean): void {
  if (whole) agent.keep(connection);
  else agent.discard(connection);
}

const PEER_CLOSED = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

function failure(error: unknown): { readonly errorClass: ErrorClass; readonly message: string } {
  if (error instanceof ConnectError) return { errorClass: error.kind, message: error.message };
  if (error instanceof HeadTimeout) return { errorClass: 'timeout', message: error.message };
  const code = errorCode(error) ?? '';
  const text =
    typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
  const message = code === '' ? text : `${text} (${code})`;
  if (code === 'ETIMEDOUT') return { errorClass: 'timeout', message };
  if (code.startsWith('ERR_SSL')) return { errorClass: 'tls', message };
  // undici has one code for a peer that closed and for a head that is not HTTP. Only the text of the error differs.
  const closed = PEER_CLOSED.has(code) || (code === 'UND_ERR_SOCKET' && !text.startsWith('bad '));
  return { errorClass: closed ? 'reset' : 'bad_response', message };
}

const publicOnly = new AddressPolicy();

/**
 * Contract 5: returns the record for the delivery log, without an address that is not public, unless the URL itself has the address.
 *
 * A project could otherwise look up the addresses of this network by name. The dispatcher's own log keeps them.
 */
export function shownRecord(made: AttemptRecord, url: string): AttemptRecord {
  const { address, ...rest } = made;
  if (address === undefined || publicOnly.refusal(address) === undefined) return made;
  return isIP(bareHost(url)) === 0 ? rest : made;
}

/** Returns the host of a URL, without the brackets of an IPv6 address. */
const bareHost = (url: string): string => (URL.parse(url)?.hostname ?? '').replace(/^\[|\]$/g, '');
