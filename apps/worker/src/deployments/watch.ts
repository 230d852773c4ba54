// Contract 7: reports that code may have changed. Watches each folder with code, and reports a change regularly for file systems without events.
import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';
import { isCodeName, isToolsFolder } from './version.ts';

/** An editor or a copy writes in several steps. Events within this time count as a single change. */
const SETTLED_MS = 200;
/** The longest delay of a report while events continue. */
const AT_MOST_MS = 2_000;

/**
 * Watches folders, each with a separate watcher.
 *
 * It does not use `recursive`, because Node then watches every single file, including tens of thousands in a virtual environment.
 */
export class CodeWatch {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #rescan: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;
  #firstAt = 0;
  #failureLogged = false;

  readonly #changed: () => void;
  readonly #logger: { warn(fields: object, text: string): void };

  /**
   * @param changed called shortly after a change, and every `rescanMs`, because network file systems and some containers send no events
   */
  constructor(changed: () => void, rescanMs: number, logger: { warn(fields: object, text: string): void }) {
    this.#changed = changed;
    this.#logger = logger;

    this.#rescan = setInterval(changed, rescanMs);
  }

  /** Watches exactly these folders from now on. */
  follow(folders: readonly string[]): void {
    const wanted = new Set(folders);
    for (const [folder, watcher] of this.#watchers) {
      if (wanted.has(folder)) continue;
      this.#watchers.delete(folder);
      watcher.close();
    }
    for (const folder of wanted) if (!this.#watchers.has(folder)) this.#open(folder);
  }

  close(): void {
    clearInterval(this.#rescan);
    clearTimeout(this.#timer);
    this.follow([]);
  }

  #open(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, (event, name) => {
        // The changed name may be a folder. The watcher of a removed folder is dead, even if another folder has the name now.
        if (event === 'rename' && name !== null) this.#forget(join(folder, name));
        if (name === null || (event === 'rename' ? !isToolsFolder(name) : isCodeName(name))) this.#soon();
      });
      watcher.on('error', () => this.#drop(folder, watcher));
      this.#watchers.set(folder, watcher);
    } catch (error) {
      // No watches are free, or the folder was removed. The regular look still finds changes.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || this.#failureLogged) return;
      this.#failureLogged = true;
      this.#logger.warn({ err: error, folder }, 'the folder cannot be watched; changes are found by the regular scan');
    }
  }

  #forget(gone: string): void {
    for (const [folder, watcher] of this.#watchers) {
      if (folder !== gone && !folder.startsWith(`${gone}/`)) continue;
      this.#watchers.delete(folder);
      watcher.close();
    }
  }

  #drop(folder: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(folder) === watcher) this.#watchers.delete(folder);
    this.#soon();
  }

  #soon(): void {
    const now = performance.now();
    if (this.#timer === undefined) this.#firstAt = now;
    clearTimeout(this.#timer);
    const left = Math.max(0, this.#firstAt + AT_MOST_MS - now);
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#changed();
      },
      Math.min(SETTLED_MS, left),
    );
  }
}
