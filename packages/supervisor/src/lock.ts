// One stack for each data folder, because two stacks would write the same Redis file.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandOf } from './parts/processes.ts';

/** Another stack runs on this data folder. */
export class Locked extends Error {
  constructor(pid: number, folder: string) {
    super(`already running on ${folder} (process ${pid}); stop that process first, or set DATA_DIR to another folder`);
    this.name = 'Locked';
  }
}

/** Returns the pid in the lock if its process still runs. Compares the command, because another process may have the pid by now. */
function holder(text: string): number | undefined {
  const [id = '', ...command] = text.split('\n');
  const pid = Number(id);
  return Number.isInteger(pid) && pid > 0 && pid !== process.pid && commandOf(pid) === command.join('\n')
    ? pid
    : undefined;
}

/** Creates the lock. The file is written under another name and then linked, so that no reader sees a lock without its owner. */
function create(path: string): boolean {
  const made = `${path}.${process.pid}.new`;
  writeFileSync(made, `${process.pid}\n${commandOf(process.pid)}`, { mode: 0o600 });
  try {
    linkSync(made, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(made, { force: true });
  }
}

/**
 * Takes the data folder for this process. Replaces the lock of a process that was killed.
 *
 * @returns releases the folder; may be called twice
 * @throws Locked
 */
export function takeLock(folder: string): () => void {
  const path = join(folder, 'lock');
  while (!create(path)) {
    let found: string;
    try {
      found = readFileSync(path, 'utf8');
    } catch {
      continue;
    }
    const pid = holder(found);
    if (pid !== undefined) throw new Locked(pid, folder);
    // Two processes may find the stale lock at once. The second rename moves the fresh lock of the first process, and puts it back.
    const aside = `${path}.${process.pid}`;
    try {
      renameSync(path, aside);
    } catch {
      continue;
    }
    if (readFileSync(aside, 'utf8') === found) rmSync(aside);
    else renameSync(aside, path);
  }
  let held = true;
  return () => {
    if (held) rmSync(path, { force: true });
    held = false;
  };
}
