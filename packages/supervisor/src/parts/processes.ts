// Finds and signals processes, also those of an earlier start whose pids other processes may have by now.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** Whether the process exists. A process that has ended and waits for its parent does not count. */
export function alive(pid: number): boolean {
  return commandOf(pid) !== '';
}

/** Returns the command line of a process, or an empty text if there is no process. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    if (process.platform === 'linux') return '';
  }
  try {
    return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  } catch {
    return '';
  }
}

/** Sends a signal to a process or, with a negative id, to a group. Returns false if there is none. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

const LOOK_EVERY_MS = 50;

/** Waits until all of `pids` have ended. Returns whether they ended within `limitMs`. Polls, because they are not its children. */
export async function gone(pids: readonly number[], limitMs: number): Promise<boolean> {
  const until = Date.now() + limitMs;
  while (pids.some(alive)) {
    if (Date.now() >= until) return false;
    await setTimeout(LOOK_EVERY_MS);
  }
  return true;
}
