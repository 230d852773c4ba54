// runtimes: the program of an app's own web server: what is started, with which environment, on which port.
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { type Command, keptBy } from '../keeper.ts';

/**
 * Under a keeper: whatever language the server is written in, it and what it started do not outlive their worker, and hold no more than they may.
 *
 * @param entrypoint program and arguments; `{port}` in them stands for the port
 * @param python what the keeper runs in
 * @param path where programs are looked for
 * @throws Error in words for the app's author: there is no such program
 */
export async function serverCommand(
  entrypoint: readonly string[],
  python: string,
  { folder, path, port, memoryBytes }: { folder: string; path: string; port: number; memoryBytes: number | undefined },
): Promise<Command> {
  const [program = '', ...args] = entrypoint.map((word) => word.replaceAll('{port}', String(port)));
  return keptBy(python, memoryBytes, { file: await findProgram(program, folder, path), args });
}

/** The server's environment: the app's, where it listens, and its virtual environment in front. */
export function serverEnv(env: Readonly<Record<string, string>>, folder: string, port: number): Record<string, string> {
  return { ...env, PATH: serverPath(env.PATH ?? '', folder), PORT: String(port) };
}

/** Where programs are looked for: first in the app's own virtual environment and packages. */
export const serverPath = (path: string, folder: string): string =>
  [join(folder, '.venv', 'bin'), join(folder, 'node_modules', '.bin'), path].join(delimiter);

/**
 * A program by its absolute path. `python` is `python3` where there is no other, as on Debian.
 *
 * @throws Error in words for the app's author
 */
export async function findProgram(program: string, folder: string, path: string): Promise<string> {
  if (program.includes('/')) {
    const found = isAbsolute(program) ? program : resolve(folder, program);
    if (await isProgram(found)) return found;
    throw new Error(`there is no program ${program}`);
  }
  for (const name of program === 'python' ? ['python', 'python3'] : [program])
    for (const place of path.split(delimiter)) {
      const found = join(place === '' ? folder : place, name);
      if (await isProgram(found)) return resolve(folder, found);
    }
  throw new Error(`there is no program ${program} on the PATH`);
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
