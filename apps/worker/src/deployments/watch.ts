// Tells that code may have changed: one watcher per folder of code, and a look every few seconds where the system tells of nothing.
import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';
import { isCodeName, isToolsFolder } from './version.ts';

/** An editor or a copy writes in several steps; what is told within this time is one change. */
const SETTLED_MS = 200;
/** Steps that never end are looked at all the same. */
const AT_MOST_MS = 2_000;

/**
 * Watches folders, each by itself.
 *
 * Not `recursive`: Node then puts a watch on every single file, a virtual environment's tens of thousands among them.
 */
export class CodeWatch {
  private readonly watchers = new Map<string, FSWatcher>();
  private readonly rescan: NodeJS.Timeout;
  private timer: NodeJS.Timeout | undefined;
  private firstAt = 0;
  private toldOfFailure = false;

  /**
   * @param changed called some time after something changed, and every `rescanMs`: network file systems and some containers tell nothing
   */
  constructor(
    private readonly changed: () => void,
    rescanMs: number,
    private readonly logger: { warn(fields: object, text: string): void },
  ) {
    this.rescan = setInterval(changed, rescanMs);
  }

  /** Watches exactly these folders from now on. */
  follow(folders: readonly string[]): void {
    const wanted = new Set(folders);
    for (const [folder, watcher] of this.watchers) {
      if (wanted.has(folder)) continue;
      this.watchers.delete(folder);
      watcher.close();
    }
    for (const folder of wanted) if (!this.watchers.has(folder)) this.open(folder);
  }

  close(): void {
    clearInterval(this.rescan);
    clearTimeout(this.timer);
    this.follow([]);
  }

  private open(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, (event, name) => {
        // What appears or goes may be a folder; of one that went, the watcher is dead even if another has its name by now.
        if (event === 'rename' && name !== null) this.forget(join(folder, name));
        if (name === null || (event === 'rename' ? !isToolsFolder(name) : isCodeName(name))) this.soon();
      });
      watcher.on('error', () => this.drop(folder, watcher));
      this.watchers.set(folder, watcher);
    } catch (error) {
      // No watches left, or the folder went away: the regular look finds what happened.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || this.toldOfFailure) return;
      this.toldOfFailure = true;
      this.logger.warn({ err: error, folder }, 'folder cannot be watched, its changes are noticed a little later');
    }
  }

  private forget(gone: string): void {
    for (const [folder, watcher] of this.watchers) {
      if (folder !== gone && !folder.startsWith(`${gone}/`)) continue;
      this.watchers.delete(folder);
      watcher.close();
    }
  }

  private drop(folder: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.watchers.get(folder) === watcher) this.watchers.delete(folder);
    this.soon();
  }

  private soon(): void {
    const now = performance.now();
    if (this.timer === undefined) this.firstAt = now;
    clearTimeout(this.timer);
    const left = Math.max(0, this.firstAt + AT_MOST_MS - now);
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        this.changed();
      },
      Math.min(SETTLED_MS, left),
    );
  }
}
