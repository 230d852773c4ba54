// Finds the processes of functions from outside: their working folder is their app's folder. Linux only.
import { readdir, readFile, readlink } from 'node:fs/promises';

/** Returns the ids of processes that work in a folder or below it. */
export async function processesIn(folder: string): Promise<number[]> {
  if (process.platform !== 'linux') return [];
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')));
  return pids.filter((_, at) => folders[at]?.startsWith(folder));
}

/** Returns the ancestors of a process, parent first; empty if the process has ended. */
export async function ancestorsOf(pid: number): Promise<number[]> {
  const ancestors: number[] = [];
  for (let one = pid; one > 1; ) {
    const stat = await readFile(`/proc/${one}/stat`, 'utf8').catch(() => '');
    const parent = Number(/\) \S (\d+)/.exec(stat)?.[1] ?? 0);
    if (parent > 0) ancestors.push(parent);
    one = parent;
  }
  return ancestors;
}

/** Returns the processes that run functions for a worker: its descendants without children. */
export async function replicasOf(worker: number, appsDir: string): Promise<number[]> {
  const pids = await processesIn(appsDir);
  const families = await Promise.all(pids.map(ancestorsOf));
  const parents = new Set(families.map(([parent]) => parent));
  return pids.filter((pid, at) => !parents.has(pid) && families[at]?.includes(worker));
}
