// `npm run check`: the program of an app that is a web server of its own, and the Python that it runs in, where it does.
import { open } from 'node:fs/promises';
import { basename, isAbsolute } from 'node:path';
import { findProgram, serverPath } from '../runtimes/http-server/server-program.ts';

const PYTHON = /^python[\d.]*$/;
/** What the kernel reads of a script's first line. */
const FIRST_LINE_BYTES = 256;

/**
 * The interpreter of a server in Python: the program itself, or the one that its script names. Undefined where it is none, or who knows.
 *
 * @throws Error in words for the app's author: there is no such program
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
