// Contract 2, `upstream_unavailable`: why a custom runtime did not answer, in the words that its caller reads. Pure.

/**
 * Returns the cause in words.
 *
 * Node's text of a failed connection has the address that a name resolved to, so only the code is kept. After several addresses the text is empty.
 */
export function inWords(error: NodeJS.ErrnoException): string {
  const { code, message } = error;
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'the connection was closed';
  return code !== undefined && ('address' in error || message === '') ? `no connection (${code})` : message;
}
