// Contract 2, "Errors", `upstream_unavailable`: the reason, as text for the caller, why a custom runtime did not answer.

/**
 * Returns the cause as text.
 *
 * Node's text of a failed connection has the resolved address, so only the code is kept. After several addresses, the text is empty.
 */
export function failureText(error: NodeJS.ErrnoException): string {
  const { code, message } = error;
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'the connection was closed';
  return code !== undefined && ('address' in error || message === '') ? `no connection (${code})` : message;
}
