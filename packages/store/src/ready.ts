// Contract 6, `/readyz`: checks whether Redis runs this service's scripts, not only whether Redis answers.
import type { Redis } from 'ioredis';
import { withinLimit } from './redis.ts';
import type { ScriptName } from './script-files.ts';
import { runScript, type Script, ScriptFaults } from './scripts.ts';
import { storeError } from './store-error.ts';

const ready: Script<void, void> = { name: 'ready', encode: () => [], decode: () => undefined };

/** No project has this name: a project's name begins with a letter or a digit. */
const NO_PROJECT = '-';

/**
 * Returns the reason why the service cannot use the store now; undefined if it can.
 *
 * @param needed the scripts that every call of the service needs
 */
export async function storeNotReadyReason(
  redis: Redis,
  limitMs: number,
  needed: readonly ScriptName[],
): Promise<string | undefined> {
  try {
    await withinLimit(runScript(redis, ready, NO_PROJECT, undefined), limitMs);
  } catch (error) {
    const { cause } = storeError(error);
    if (!(cause instanceof Error) || cause.name !== 'ReplyError') return 'the run store does not answer';
    return `the run store refuses commands: ${cause.message}`;
  }
  const broken = ScriptFaults.of(redis).broken(needed);
  return broken === undefined ? undefined : `the run store refuses commands: ${broken}`;
}
