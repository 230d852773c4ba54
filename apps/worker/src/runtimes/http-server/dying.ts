// proc(5): whether a server's process is about to end. Its connections close before its exit is reported, because its keeper must wake up first.
import { readFileSync } from 'node:fs';

/** `PF_EXITING` of linux/sched.h: set before a process's files are closed. */
const EXITING = 0x4;

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
};

/** Returns whether the keeper's child is ending. False if the system does not report it. @param keeper process id of the keeper */
export function isDying(keeper: number | undefined): boolean {
  const children = read(`/proc/${keeper}/task/${keeper}/children`);
  if (children === undefined) return false;
  const stat = read(`/proc/${children.split(' ')[0]}/stat`);
  // The process has ended, and its keeper knows this or will know soon.
  if (stat === undefined) return true;
  // After the name in brackets, which may contain anything: state, ppid, pgrp, session, tty, tpgid, flags.
  const [state = '', , , , , , flags] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === 'Z' || state === 'X' || (Number(flags) & EXITING) !== 0;
}
