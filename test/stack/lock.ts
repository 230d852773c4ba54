// One stack per data folder: two would write one Redis file.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandOf } from './processes.ts';

/** Another stack runs on this data folder. */
export class Locked extends Error {
  constructor(pid: number, folder: string) {
    super(`already running on ${folder} (process ${pid}); stop it first, or set DATA_DIR to another folder`);
    this.name = 'Locked';
  }
}

/** The holder that the file names, where it still runs: an id alone may meanwhile belong to somebody else. */
function holder(text: string): number | undefined {
  const [id = '', ...command] = text.split('\n');
  const pid = Number(id);
  return Number.isInteger(pid) && pid > 0 && pid !== process.pid && commandOf(pid) === command.join('\n')
    ? pid
    : undefined;
}

/** Made whole under another name and then linked: nobody reads a lock that does not yet say whose it is. */
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
 * Takes the data folder for this process, over the lock of one that was killed if need be.
 *
 * @returns gives it back; harmless when done twice
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
    // Two may find it stale at once: the one whose rename takes a fresh lock instead has lost, and puts it back.
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
