// RFC 9110 §15.2: a client accepts 1xx answers that it did not request. undici closes a connection after a 100, so this file removes every 100.
import type { Socket } from 'node:net';

const CONTINUE = /^HTTP\/1\.[01] 100[ \r]/;
const SHORTEST = 'HTTP/1.1 100 '.length;
const BEGINNINGS = ['HTTP/1.1 100 ', 'HTTP/1.0 100 ', 'HTTP/1.1 100\r', 'HTTP/1.0 100\r'];
/** undici's limit for a head. undici itself rejects a longer head. */
const LONGEST_HEAD = 16 * 1024;

/**
 * Removes every `100 Continue` before an answer from the bytes that are read from this socket.
 *
 * @returns a function to call before each exchange except the first; bytes between two exchanges are not changed
 */
export function withoutContinues(socket: Socket): () => void {
  const read = socket.read.bind(socket);
  /** The bytes of an answer while they can still be a 100. Undefined after the final answer has begun. */
  let start: Buffer | undefined = Buffer.alloc(0);
  socket.read = (size?: number): Buffer | null => {
    const chunk = read(size) as Buffer | null;
    if (chunk === null || start === undefined) return chunk;
    start = afterContinues(start.length === 0 ? chunk : Buffer.concat([start, chunk]));
    if (mayBeContinue(start)) return null;
    const answer = start;
    start = undefined;
    return answer;
  };
  return () => {
    start = Buffer.alloc(0);
  };
}

function afterContinues(bytes: Buffer): Buffer {
  let rest = bytes;
  while (CONTINUE.test(beginningOf(rest))) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return rest;
    rest = rest.subarray(end + 4);
  }
  return rest;
}

/** Returns whether the bytes are a 100, or too few bytes to know. */
function mayBeContinue(bytes: Buffer): boolean {
  if (bytes.length >= SHORTEST) return bytes.length <= LONGEST_HEAD && CONTINUE.test(beginningOf(bytes));
  const text = beginningOf(bytes);
  return BEGINNINGS.some((beginning) => beginning.startsWith(text));
}

const beginningOf = (bytes: Buffer): string => bytes.toString('latin1', 0, SHORTEST);
