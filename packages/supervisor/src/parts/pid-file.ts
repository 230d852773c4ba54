// `.data/pids.json`: the pids of the parts, for observers, and for a start after a `kill -9`.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandOf, gone, signal } from './processes.ts';

const NATURAL_END_MS = 5000;

/** Process ids by the name of the part. */
export type Pids = Readonly<Record<string, number>>;

const file = (folder: string): string => join(folder, 'pids.json');

/** Writes the file and then renames it, so that a reader never sees half a file. */
export function writePids(folder: string, pids: Pids): void {
  const path = file(folder);
  writeFileSync(`${path}.new`, `${JSON.stringify(pids, null, 2)}\n`);
  renameSync(`${path}.new`, path);
}

export function readPids(folder: string): Pids {
  try {
    return JSON.parse(readFileSync(file(folder), 'utf8')) as Pids;
  } catch {
    return {};
  }
}

export const removePids = (folder: string): void => rmSync(file(folder), { force: true });

/**
 * Ends the processes of a supervisor that was killed. Its services notice the end of the supervisor and drain, so they first get time.
 *
 * @param ours whether a command line belongs to the stack, because another process may have the pid by now
 */
export async function endLeftovers(
  folder: string,
  ours: (command: string) => boolean,
  say: (text: string) => void,
): Promise<void> {
  const left = Object.values(readPids(folder)).filter((pid) => pid !== process.pid && ours(commandOf(pid)));
  if (left.length > 0) {
    say('The last start was killed: waiting until its processes have ended');
    if (!(await gone(left, NATURAL_END_MS))) {
      for (const pid of left) signal(-pid, 'SIGKILL') || signal(pid, 'SIGKILL');
      await gone(left, NATURAL_END_MS);
    }
  }
  removePids(folder);
}
