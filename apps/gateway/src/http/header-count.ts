// RFC 9110 §5.3: how often a header came. Node keeps the first of some and joins others; its own list of all (`headersDistinct`) takes 2 µs.

/**
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
