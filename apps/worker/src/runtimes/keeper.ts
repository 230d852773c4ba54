// harness/PROTOCOL.md, "The keeper": what every replica is started by, whatever it is written in, and what it says.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** From `src/runtimes` and from `dist/runtimes` alike. */
const KEEPER = fileURLToPath(new URL('../../harness/keeper', import.meta.url));

/** A program, by its absolute path, and its arguments. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * A command under a keeper.
 *
 * @param python absolute path of an interpreter that the keeper runs in
 * @param memoryBytes what the processes of it may hold together; absent: as much as there is
 */
export const keptBy = (python: string, memoryBytes: number | undefined, { file, args }: Command): Command => ({
  file: python,
  args: ['-I', '-S', KEEPER, String(memoryBytes ?? 0), file, ...args],
});

/** An app's environment as a keeper takes it: set as it is, some of it (`LD_PRELOAD`) would do to the keeper what it is to do to the program. */
export const keptEnv = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [`KEPT_${name}`, value]));

const wordSchema = z.discriminatedUnion('t', [
  z.object({ t: z.literal('kept'), contained: z.boolean() }),
  z.object({ t: z.literal('out_of_memory'), bytes: z.number().int().nonnegative() }),
]);

/** A line of the keeper's; undefined for anything else: a replica holds the same pipe, and is believed nothing there. */
export type KeeperWord = z.infer<typeof wordSchema>;

export function keeperWord(line: string): KeeperWord | undefined {
  try {
    return wordSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
