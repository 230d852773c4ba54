// harness/PROTOCOL.md, "The keeper": the command line, environment and messages of the keeper that starts every replica.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** The path is valid from `src/runtimes` and from `dist/runtimes`. */
const KEEPER = fileURLToPath(new URL('../../harness/keeper', import.meta.url));

/** A program's absolute path, and its arguments. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Returns a command that starts the command under a keeper.
 *
 * @param python absolute path of the interpreter that runs the keeper
 * @param memoryBytes memory limit of all its processes together. Undefined: no limit.
 */
export const keptBy = (python: string, memoryBytes: number | undefined, { file, args }: Command): Command => ({
  file: python,
  args: ['-I', '-S', KEEPER, String(memoryBytes ?? 0), file, ...args],
});

/** Returns an app's environment with prefixed names. Without the prefix, a variable such as `LD_PRELOAD` would also affect the keeper. */
export const keptEnv = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [`KEPT_${name}`, value]));

const messageSchema = z.discriminatedUnion('t', [
  z.object({ t: z.literal('kept'), contained: z.boolean() }),
  z.object({ t: z.literal('out_of_memory'), bytes: z.number().int().nonnegative() }),
]);

/** A message of the keeper. Any other line is ignored, because the replica holds the same pipe and could write to it. */
export type KeeperMessage = z.infer<typeof messageSchema>;

export function keeperMessage(line: string): KeeperMessage | undefined {
  try {
    return messageSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
