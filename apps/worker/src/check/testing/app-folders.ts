// Folders of apps as authors write them, for tests of `npm run check`.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { type Checked, type CheckOptions, checkApp } from '../check-app.ts';

/** The folders of a test file. They are removed after its last test. */
export class AppFolders {
  /** The lines that the checked apps have printed. */
  readonly printed: string[] = [];
  readonly options: CheckOptions = {
    maxItemBytes: 1e6,
    maxOutputBytes: 1e6,
    maxLogBytes: 1e5,
    allowCommands: false,
    environment: process.env,
    printed: (line) => this.printed.push(line),
  };
  #root = '';
  #made = 0;

  constructor() {
    beforeAll(async () => {
      this.#root = await mkdtemp(join(tmpdir(), 'check-'));
    });
    afterAll(() => rm(this.#root, { recursive: true, force: true }));
  }

  /** Returns the path of an app's folder. */
  path(name: string): string {
    return join(this.#root, 'demo', name);
  }

  /** Creates an app's folder with these files. @returns its path */
  async make(files: Readonly<Record<string, string>>, name = `app-${++this.#made}`): Promise<string> {
    const path = this.path(name);
    for (const [file, text] of Object.entries(files)) {
      await mkdir(dirname(join(path, file)), { recursive: true });
      await writeFile(join(path, file), text, { mode: 0o755 });
    }
    return path;
  }

  /** Creates an app's folder and checks it. */
  async check(files: Readonly<Record<string, string>>, name?: string): Promise<Checked> {
    return checkApp(await this.make(files, name), this.options);
  }
}
