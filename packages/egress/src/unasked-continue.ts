// RFC 9110 §15.2: a client understands 1xx answers that it did not ask for. undici breaks a connection off at a 100: so it never sees one.
import type { Socket } from 'node:net';

const CONTINUE = /^HTTP\/1\.[01] 100[ \r]/;
const SHORTEST = 'HTTP/1.1 100 '.length;
const BEGINNINGS = ['HTTP/1.1 100 ', 'HTTP/1.0 100 ', 'HTTP/1.1 100\r', 'HTTP/1.0 100\r'];
/** As long as undici lets a head be; what is longer is left for it to refuse. */
const LONGEST_HEAD = 16 * 1024;

/**
 * Takes every `100 Continue` before an answer out of what is read from this socket.
 *
 * @returns to be called before each exchange but the first: between two, bytes pass as they are
 */
export function withoutContinues(socket: Socket): () => void {
  const read = socket.read.bind(socket);
  /** The start of an answer as far as it could still be a 100; nothing once an answer has begun. */
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

/** Whether more has to come before it is known what this is. */
function mayBeContinue(bytes: Buffer): boolean {
  if (bytes.length >= SHORTEST) return bytes.length <= LONGEST_HEAD && CONTINUE.test(beginningOf(bytes));
  const text = beginningOf(bytes);
  return BEGINNINGS.some((beginning) => beginning.startsWith(text));
}

const beginningOf = (bytes: Buffer): string => bytes.toString('latin1', 0, SHORTEST);
