// Contract 7: `npm run check` lists the modules that an app's code imports and its interpreter does not have.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';

/** The same path from `src/check` and from `dist/check`. */
const PROGRAM = fileURLToPath(new URL('../../harness/check/imports.py', import.meta.url));
const LIMIT_MS = 60_000;

const answer = z.array(z.object({ module: z.string(), where: z.string(), imported: z.boolean() }));

/**
 * A module that the interpreter does not have. `where` is the first import, `<file>:<line>`.
 * `imported`: the start of the app imports this file, directly or through other files.
 */
export type MissingModule = z.infer<typeof answer>[number];

/**
 * @param start the entry point's file, or the words of a server's command
 * @throws Error if the interpreter cannot run the search
 */
export async function missingModules(
  interpreter: string,
  folder: string,
  start: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<readonly MissingModule[]> {
  const options = { env, cwd: folder, timeout: LIMIT_MS };
  const { stdout } = await promisify(execFile)(interpreter, [PROGRAM, folder, ...start], options);
  return answer.parse(JSON.parse(stdout));
}
