// Contract 1, "Custom runtimes": a request that is forwarded as a run, and the head of the server's answer, as services hand them to each other.
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { ServiceError } from './errors.ts';

/** Name and value. A character is a byte of the header (Latin-1), as Node reads and writes them. */
export type HeaderPair = readonly [name: string, value: string];

/** What a custom runtime is asked: the parameters of its run. */
export interface ForwardedRequest {
  readonly method: string;
  /** Path and query below the app, percent-encoding as the caller sent it; begins with `/`. */
  readonly target: string;
  /** End-to-end headers in the caller's order. Those that the connection to the server decides are not among them. */
  readonly headers: readonly HeaderPair[];
  readonly body: Buffer;
}

/**
 * How the body of an answer is kept, which follows from the head of the answer.
 *
 * - `sse`: its events are the run's items. One of data alone is its data; any other is its own text, which is a ready-made event (contract 3)
 * - `ndjson`: its lines are the items
 * - `chunks`: UTF-8 text that came in pieces without a length: the pieces are the items, the body is what they are together
 * - `json`, `text`, `binary`: whole, the run's result, as the bytes that came; the word says how an envelope shows them
 */
export type AnswerForm = 'sse' | 'ndjson' | 'chunks' | 'json' | 'text' | 'binary';

/** Status and headers of a custom runtime's answer. */
export interface AnswerHead {
  readonly status: number;
  /** End-to-end headers, in the server's order and spelling. */
  readonly headers: readonly HeaderPair[];
  readonly form: AnswerForm;
}

const NEWLINE = 0x0a;
/** What a record may hold of an answer's headers. */
const MAX_HEAD_BYTES = 32 * 1024;

/** A line of JSON and, after its newline, the body's bytes. */
export function encodeRequest({ method, target, headers, body }: ForwardedRequest): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ method, target, headers })}\n`), body]);
}

/** What `encodeRequest` made; the body is a part of the same bytes. */
export function decodeRequest(bytes: Buffer): ForwardedRequest {
  const end = bytes.indexOf(NEWLINE);
  const head = JSON.parse(bytes.toString('utf8', 0, end)) as Omit<ForwardedRequest, 'body'>;
  return { ...head, body: bytes.subarray(end + 1) };
}

/**
 * A head as it is stored: JSON text.
 *
 * @throws ServiceError `upstream_reset` where it is over 32 KiB or could not be written to a caller
 */
export function encodeHead(head: AnswerHead): string {
  if (!Number.isInteger(head.status) || head.status < 200 || head.status > 599) {
    throw new ServiceError('upstream_reset', `The server answered with status ${head.status}.`);
  }
  for (const [name, value] of head.headers) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch (cause) {
      throw new ServiceError('upstream_reset', 'The server answered with a header that is not HTTP.', { cause });
    }
  }
  const text = JSON.stringify(head);
  if (Buffer.byteLength(text) <= MAX_HEAD_BYTES) return text;
  throw new ServiceError('upstream_reset', `The server answered with over ${MAX_HEAD_BYTES} bytes of headers.`);
}

/** What `encodeHead` made. */
export const decodeHead = (text: string): AnswerHead => JSON.parse(text) as AnswerHead;

/** A header's first value. @param name in lower case */
export const headerOf = (headers: readonly HeaderPair[], name: string): string | undefined =>
  headers.find(([each]) => each.toLowerCase() === name)?.[1];
