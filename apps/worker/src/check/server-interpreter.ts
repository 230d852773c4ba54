// Contract 7: `npm run check` finds the Python interpreter of an app that is a web server, if the server is a Python program.
import { open } from 'node:fs/promises';
import { basename, isAbsolute } from 'node:path';
import { findProgram, serverPath } from '../runtimes/http-server/server-program.ts';

const PYTHON = /^python[\d.]*$/;
/** The number of bytes that the kernel reads from a script's first line. */
const FIRST_LINE_BYTES = 256;

/**
 * Returns the interpreter of a server in Python: the program itself, or the interpreter that its script names. Returns undefined if the program
 * is not Python, or if its interpreter is not known.
 *
 * @throws Error with a message for the app's author if the program does not exist
 */
export async function pythonOfServer(
  entrypoint: readonly string[],
  folder: string,
  path: string,
): Promise<string | undefined> {
  const places = serverPath(path, folder);
  const program = await findProgram(entrypoint[0] ?? '', folder, places);
  if (PYTHON.test(basename(program))) return program;
  const [interpreter = '', argument = ''] = (await firstLine(program)).replace(/^#!\s*/, '').split(/\s+/);
  if (PYTHON.test(basename(interpreter)) && isAbsolute(interpreter)) return interpreter;
  if (basename(interpreter) !== 'env' || !PYTHON.test(argument)) return undefined;
  return findProgram(argument, folder, places).catch(() => undefined);
}

async function firstLine(file: string): Promise<string> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(FIRST_LINE_BYTES), 0, FIRST_LINE_BYTES);
    const [line = ''] = buffer.toString('latin1', 0, bytesRead).split('\n');
    return line.startsWith('#!') ? line : '';
  } finally {
    await handle.close();
  }
}
