// RFC 9110 §5.3: counts the occurrences of a header, because Node keeps the first of some headers and joins others.
// Node's own list of all headers (`headersDistinct`) takes 2 µs.

/**
 * Returns how often the header occurs.
 *
 * @param rawHeaders names and values as received
 * @param name in lower case
 */
export function headerCount(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] as string;
    if (header.length === name.length && header.toLowerCase() === name) count += 1;
  }
  return count;
}
