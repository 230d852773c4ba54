// Contract 1, "Custom runtimes": the program of an app's web server, its environment and its port.
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { type Command, keptBy } from '../keeper.ts';

/**
 * Returns the server's command under a keeper. So the server and its processes end with their worker and respect the memory limit.
 *
 * @param entrypoint program and arguments. `{port}` in them is replaced by the port.
 * @param python the interpreter that runs the keeper
 * @param path the PATH on which programs are searched
 * @throws Error with a text for the app's author: the program does not exist
 */
export async function serverCommand(
  entrypoint: readonly string[],
  python: string,
  { folder, path, port, memoryBytes }: { folder: string; path: string; port: number; memoryBytes: number | undefined },
): Promise<Command> {
  const [program = '', ...args] = entrypoint.map((word) => word.replaceAll('{port}', String(port)));
  return keptBy(python, memoryBytes, { file: await findProgram(program, folder, path), args });
}

/** Returns the server's environment: the app's variables, the port, and the virtual environment at the front of the PATH. */
export function serverEnv(env: Readonly<Record<string, string>>, folder: string, port: number): Record<string, string> {
  return { ...env, PATH: serverPath(env.PATH ?? '', folder), PORT: String(port) };
}

/** Returns the PATH on which programs are searched. The app's virtual environment and packages come first. */
export const serverPath = (path: string, folder: string): string =>
  [join(folder, '.venv', 'bin'), join(folder, 'node_modules', '.bin'), path].join(delimiter);

/**
 * Returns a program's absolute path. `python` falls back to `python3`, because Debian has no `python`.
 *
 * @throws Error with a text for the app's author
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
