// The environment of a program that a test starts.

/**
 * Returns the PATH of this process, the folder of Node's compile cache, and `env`. No other variable of this process is passed on.
 * With the cache, a program that runs from its TypeScript sources starts in half of the time.
 */
export function childEnvironment(env: Readonly<Record<string, string>> = {}): Record<string, string | undefined> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }), ...env };
}
