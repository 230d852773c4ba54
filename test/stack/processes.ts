// Processes of an earlier start, told from others that got their id since.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** Whether there is such a process (one that has ended and waits for its parent counts as gone). */
export function alive(pid: number): boolean {
  return commandOf(pid) !== '';
}

/** The command line of a process; empty where there is none. */
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

/** Sends a signal to a process or, with a negative id, to a group; false where there is none. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

const LOOK_EVERY_MS = 50;

/** Waits until none of `pids` is there any more. True when that came within `limitMs`. They are no children of ours: nothing tells us of their end. */
export async function gone(pids: readonly number[], limitMs: number): Promise<boolean> {
  const until = Date.now() + limitMs;
  while (pids.some(alive)) {
    if (Date.now() >= until) return false;
    await setTimeout(LOOK_EVERY_MS);
  }
  return true;
}
