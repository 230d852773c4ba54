// Contract 8: why the system refused to start a process, as text for the app's author.

const REASONS: Readonly<Record<string, string>> = {
  EMFILE: 'the worker has too many open files',
  ENFILE: 'the machine has too many open files',
  EAGAIN: 'the machine has too many processes',
  ENOMEM: 'the machine has no memory left',
};

/**
 * Returns the reason of a failed `spawn`. The reason contains names of environment variables, never their values.
 *
 * @param error the error that `spawn` threw or emitted
 * @param env the variables that the process would have received
 */
export function spawnFailure(error: Error, env: Readonly<Record<string, string>>): string {
  const { code = '' } = error as NodeJS.ErrnoException;
  const reason = REASONS[code];
  if (reason !== undefined) return `${reason} (${code})`;
  if (code === 'E2BIG') return `its environment is too large for the system (E2BIG): ${largest(env)}`;
  // Node's message quotes the value.
  if (code === 'ERR_INVALID_ARG_VALUE') return 'a variable of its environment, or an argument, contains a NUL';
  return error.message;
}

function largest(env: Readonly<Record<string, string>>): string {
  const sizes = Object.entries(env).map(([name, value]) => ({ name, bytes: Buffer.byteLength(value) }));
  const [first] = sizes.sort((one, other) => other.bytes - one.bytes);
  return first === undefined ? 'it has no variables' : `${first.name} has ${first.bytes} bytes`;
}
