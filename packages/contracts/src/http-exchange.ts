// Contract 1, "Custom runtimes": a request that is forwarded as a run, and the head of the server's answer, as services exchange them.
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { ServiceError } from './errors.ts';

/** Name and value. A character is a byte of the header (Latin-1), as Node reads and writes them. */
export type HeaderPair = readonly [name: string, value: string];

/** The request to a custom runtime, stored as the parameters of its run. */
export interface ForwardedRequest {
  readonly method: string;
  /** Path and query below the app, with the caller's percent-encoding; begins with `/`. */
  readonly target: string;
  /** End-to-end headers in the caller's order. Headers of the connection are not included. */
  readonly headers: readonly HeaderPair[];
  readonly body: Buffer;
}

/**
 * The form in which the body of an answer is kept. The head of the answer determines the form.
 *
 * - `sse`: its events are the run's items. An event with data only is its data; any other event is its text, a ready-made item (contract 3)
 * - `ndjson`: its lines are the items
 * - `chunks`: UTF-8 text in pieces without a length: the pieces are the items, and together they are the body
 * - `bytes`: bytes in pieces: the pieces are the items, and together they are the body
 * - `json`, `text`, `binary`: the whole body is the run's result, as received; the name determines its form in an envelope
 */
export type AnswerForm = 'sse' | 'ndjson' | 'chunks' | 'bytes' | 'json' | 'text' | 'binary';

/** Status and headers of a custom runtime's answer. */
export interface AnswerHead {
  readonly status: number;
  /** End-to-end headers, in the server's order and spelling. */
  readonly headers: readonly HeaderPair[];
  readonly form: AnswerForm;
}

const NEWLINE = 0x0a;
/** The largest head that a record holds. */
const MAX_HEAD_BYTES = 32 * 1024;

/** A line of JSON and, after its newline, the body's bytes. */
export function encodeRequest({ method, target, headers, body }: ForwardedRequest): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ method, target, headers })}\n`), body]);
}

/** Decodes the bytes of `encodeRequest`. The returned body is a slice of the same bytes. */
export function decodeRequest(bytes: Buffer): ForwardedRequest {
  const end = bytes.indexOf(NEWLINE);
  const head = JSON.parse(bytes.toString('utf8', 0, end)) as Omit<ForwardedRequest, 'body'>;
  return { ...head, body: bytes.subarray(end + 1) };
}

/**
 * Encodes a head as JSON text for the store.
 *
 * @throws ServiceError `upstream_reset` if the head is over 32 KiB or is not valid HTTP
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

/** Decodes the text of `encodeHead`. */
export const decodeHead = (text: string): AnswerHead => JSON.parse(text) as AnswerHead;

/** Returns the first value of a header. @param name in lower case */
export const headerOf = (headers: readonly HeaderPair[], name: string): string | undefined =>
  headers.find(([each]) => each.toLowerCase() === name)?.[1];
