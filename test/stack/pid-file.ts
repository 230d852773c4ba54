// `.data/pids.json`: which process is which, for whoever looks from outside, and for a start after a `kill -9`.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandOf, gone, signal } from './processes.ts';

const NATURAL_END_MS = 5000;

/** A part's name to its process id. */
export type Pids = Readonly<Record<string, number>>;

const file = (folder: string): string => join(folder, 'pids.json');

/** Written whole, then renamed: a reader never sees half of it. */
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
 * Sees off what a supervisor that was killed has left: its services notice and drain, so they are given time, then ended.
 *
 * @param ours whether a command line is one of the stack's: an id may meanwhile belong to somebody else
 */
export async function endLeftovers(
  folder: string,
  ours: (command: string) => boolean,
  say: (text: string) => void,
): Promise<void> {
  const left = Object.values(readPids(folder)).filter((pid) => pid !== process.pid && ours(commandOf(pid)));
  if (left.length > 0) {
    say('The last start was killed: waiting for what it left behind');
    if (!(await gone(left, NATURAL_END_MS))) {
      for (const pid of left) signal(-pid, 'SIGKILL') || signal(pid, 'SIGKILL');
      await gone(left, NATURAL_END_MS);
    }
  }
  removePids(folder);
}
