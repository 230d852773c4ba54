// webhooks.md "An attempt": one POST within its limits, and what came of it. No policy: the verdict judges, the agent guards addresses.
import { ConnectError, type Connection, errorCode, type GuardedAgent } from '@inference-proxy/egress';
import type { Dispatcher } from 'undici';
import type { AttemptRecord } from './records.ts';
import { retryAfterSeconds } from './schedule.ts';

/** `unsigned`: the secret could not be opened, nothing was sent. `redirect`: a 3xx, which is not followed. */
export type ErrorClass =
  | 'dns'
  | 'refused'
  | 'blocked'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'bad_response'
  | 'redirect'
  | 'unsigned';

export interface AttemptLimits {
  /** From the start to the end of the answer's head, milliseconds. */
  readonly headMs: number;
  /** After the head, for the start of the body: the status has decided already, so a slow body is not waited for. */
  readonly answerMs: number;
  /** How much of the body is kept; nothing after it is read. */
  readonly answerBytes: number;
}

export const defaultLimits: AttemptLimits = { headMs: 15_000, answerMs: 2000, answerBytes: 4096 };

/** Makes one attempt. Never rejects for what a receiver does: that is in the record. */
export async function attempt(
  agent: GuardedAgent,
  url: URL,
  headers: Record<string, string>,
  body: Buffer,
  limits: AttemptLimits,
): Promise<AttemptRecord> {
  const at = Date.now();
  const begun = performance.now();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new HeadTimeout(`no answer within ${limits.headMs} ms`)), limits.headMs);
  let connection = agent.connection(url);
  const send = () =>
    connection.request({
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers,
      body,
      signal: late.signal,
    });
  const done = (result: Partial<AttemptRecord>): AttemptRecord => ({
    at,
    durationMs: Math.round(performance.now() - begun),
    ...(connection.address !== undefined && { address: connection.address }),
    ...result,
  });
  try {
    const wasKept = connection.reused;
    const response = await send().catch((error: unknown) => {
      // The receiver may have closed a kept connection just as it was used; on one of its own the attempt has its fair chance.
      if (!wasKept || failure(error).errorClass !== 'reset') throw error;
      agent.discard(connection);
      connection = agent.connection(url, { fresh: true });
      return send();
    });
    clearTimeout(timer);
    const { statusCode: status, headers: answered } = response;
    const answer = await startOf(response.body, limits);
    release(agent, connection, answer.whole);
    const [location] = [answered.location].flat();
    const [retryAfter] = [answered['retry-after']].flat();
    const retryAfterS = retryAfter === undefined ? undefined : retryAfterSeconds(retryAfter, Date.now());
    const redirected = status >= 300 && status <= 399;
    return done({
      status,
      ...(redirected && { errorClass: 'redirect' satisfies ErrorClass }),
      ...(redirected && location !== undefined && { location: location.slice(0, limits.answerBytes) }),
      ...(retryAfterS !== undefined && { retryAfterS }),
      ...(answer.bytes.length > 0 && { answer: answer.bytes.toString() }),
    });
  } catch (error) {
    clearTimeout(timer);
    agent.discard(connection);
    return done(failure(error));
  }
}

/** Only a connection whose answer was read to its end can carry another exchange. */
function release(agent: GuardedAgent, connection: Connection, whole: boolean): void {
  if (whole) agent.keep(connection);
  else agent.discard(connection);
}

class HeadTimeout extends Error {}

/** The body's first bytes, and whether they are all of it. What breaks off or dawdles is cut where it stands. */
function startOf(
  body: Dispatcher.ResponseData['body'],
  { answerBytes, answerMs }: AttemptLimits,
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (whole: boolean): void => {
      clearTimeout(timer);
      body.off('data', take).off('end', ended);
      resolve({ bytes: Buffer.concat(chunks).subarray(0, answerBytes), whole });
    };
    const take = (chunk: Buffer): void => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > answerBytes) settle(false);
    };
    const ended = (): void => settle(true);
    const timer = setTimeout(() => settle(false), answerMs);
    // Stays after the promise has settled: breaking the connection off is an error of the body too.
    body.on('error', () => settle(false));
    body.on('data', take).on('end', ended);
  });
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
  // undici gives one code to a peer that closed and to a head that is no HTTP; its text tells them apart.
  const closed = PEER_CLOSED.has(code) || (code === 'UND_ERR_SOCKET' && !text.startsWith('bad '));
  return { errorClass: closed ? 'reset' : 'bad_response', message };
}
