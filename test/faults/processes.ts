// The processes of functions, found from outside: their folder is their app's. Linux alone tells.
import { readdir, readFile, readlink } from 'node:fs/promises';

/** Process ids of all that work in a folder or below it. */
export async function processesIn(folder: string): Promise<number[]> {
  if (process.platform !== 'linux') return [];
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')));
  return pids.filter((_, at) => folders[at]?.startsWith(folder));
}

/** Its parent, that one's parent and so on; nothing where it has ended. */
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

/** What runs functions for a worker: its descendants that started nothing themselves. */
export async function replicasOf(worker: number, appsDir: string): Promise<number[]> {
  const pids = await processesIn(appsDir);
  const families = await Promise.all(pids.map(ancestorsOf));
  const parents = new Set(families.map(([parent]) => parent));
  return pids.filter((pid, at) => !parents.has(pid) && families[at]?.includes(worker));
}
