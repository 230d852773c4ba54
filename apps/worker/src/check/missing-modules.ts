// `npm run check`: what an app's code imports and its interpreter does not have.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';

/** From `src/check` and from `dist/check` alike. */
const PROGRAM = fileURLToPath(new URL('../../harness/check/imports.py', import.meta.url));
const LIMIT_MS = 60_000;

const answer = z.array(z.object({ module: z.string(), where: z.string() }));

/** A module that is imported and not there; `where` is the first place, `<file>:<line>`. */
export type MissingModule = z.infer<typeof answer>[number];

/** @throws Error when the interpreter cannot look */
export async function missingModules(
  interpreter: string,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<readonly MissingModule[]> {
  const { stdout } = await promisify(execFile)(interpreter, [PROGRAM, folder], { env, cwd: folder, timeout: LIMIT_MS });
  return answer.parse(JSON.parse(stdout));
}
