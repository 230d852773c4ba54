// Contract 7, "Dependencies": the commands of a manifest for its build, which the hosted product runs for its image.
import { delimiter, join } from 'node:path';
import type { BuildKeys } from '../deployments/build-keys.ts';
import type { BuildStep } from './build-step.ts';
import type { BuildPlace } from './package-list.ts';

const BEFORE = 'pre_build_commands';
const AFTER = 'shell_commands';

/** Returns why the commands of a manifest are refused, if `ALLOW_BUILD_COMMANDS` is not set. */
export function refusedCommands({ before, after }: BuildKeys): string | undefined {
  const names = [...(before.length > 0 ? [BEFORE] : []), ...(after.length > 0 ? [AFTER] : [])];
  if (names.length === 0) return undefined;
  return `${names.join(' and ')} of the manifest: this worker runs no commands of builds. Set ALLOW_BUILD_COMMANDS=true, or remove the commands`;
}

/** Returns the steps of commands. They run in the copy of the app, with its packages at the front of PATH. */
export function commandSteps(
  { before, after }: BuildKeys,
  { from, env }: BuildPlace,
): { before: BuildStep[]; after: BuildStep[] } {
  const path = [join(from, '.venv', 'bin'), join(from, 'node_modules', '.bin'), env.PATH].join(delimiter);
  const steps = (name: string, lines: readonly string[]): BuildStep[] =>
    lines.map((line) => ({
      name: `${name}: ${line}`,
      command: { file: '/bin/sh', args: ['-e', '-c', line] },
      folder: from,
      env: { ...env, PATH: path },
    }));
  return { before: steps(BEFORE, before), after: steps(AFTER, after) };
}
