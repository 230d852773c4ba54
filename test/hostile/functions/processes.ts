// Reads the processes below a worker from /proc.
import { readdir, readFile } from 'node:fs/promises';

interface Found {
  readonly pid: number;
  readonly parent: number;
}

/** Reads /proc/<pid>/stat. The name of the process, in parentheses, may contain any character (`man 5 proc`, "stat"). */
async function statOf(pid: string): Promise<Found | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === undefined || state === '' || state === 'Z'
    ? undefined
    : { pid: Number(pid), parent: Number(parent) };
}

/** Returns the pids of all descendants of `root`. */
export async function processesBelow(root: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const all = (await Promise.all(pids.map(statOf))).filter((one) => one !== undefined);
  const children = Map.groupBy(all, ({ parent }) => parent);
  const below = (pid: number): number[] => (children.get(pid) ?? []).flatMap((one) => [one.pid, ...below(one.pid)]);
  return below(root);
}

/** Returns the number of files and connections that a process has open. */
export const openFiles = async (pid: number): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length;

/** Returns the resident memory of a process in bytes. */
export async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
}
