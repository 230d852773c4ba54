// Contract 1: the languages of functions, as the suites see them. Each has a folder of test apps, and a way to make runtimes.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ShortLimits } from '../conformance.ts';
import { FreedSlots } from '../freed-slots.ts';
import { nodeRuntimes } from '../node.ts';
import type { ProcessCounts } from '../pool.ts';
import { pythonRuntimes } from '../python.ts';
import type { Runtime } from '../runtime.ts';
import { Call, reached } from './calls.ts';

/** Longer than a test may take, so no run reaches this limit. */
const NEVER_MS = 600_000;

/** Differences from the usual runtime: one replica of the language's test app without limits that a test could reach. */
export interface More extends ShortLimits {
  /** The test app's file without its ending, such as `output`. */
  readonly entry?: string;
  /** An app of the test's own, in the place of the test apps. Its file is `main`. */
  readonly folder?: string;
  /** The file of an app of the test's own. */
  readonly file?: string;
  readonly replicas?: number;
  readonly memoryBytes?: number | undefined;
  readonly teardownMs?: number;
  readonly maxOutputBytes?: number;
  readonly debug?: boolean;
  readonly interpreter?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export type LanguageName = 'Python' | 'Node';

/** What differs between the languages. */
const LANGUAGES = {
  Python: { runtimes: pythonRuntimes, folder: 'python', ending: '.py', interpreter: process.env.PYTHON_UNDER_TEST },
  Node: { runtimes: nodeRuntimes, folder: 'node', ending: '.ts', interpreter: undefined },
} as const;

/** One language in one test file, with the records of its runtimes. */
export class Language {
  readonly name: LanguageName;
  /** The texts of the worker's log. */
  readonly lines: string[] = [];
  /** The fields of the worker's log. */
  readonly logged: object[] = [];
  /** Processes by state, and the other metrics of processes. */
  readonly counted: Record<string, number> = {};
  readonly #folders: string[] = [];
  readonly #runtimes: Runtime[] = [];

  constructor(name: LanguageName) {
    this.name = name;
  }

  /** Returns the value of this language. */
  of<T>(values: Readonly<Record<LanguageName, T>>): T {
    return values[this.name];
  }

  /** Creates a runtime without starting it. */
  make(concurrency: number, more: More = {}): Runtime {
    const { runtimes, folder, ending, interpreter } = LANGUAGES[this.name];
    const make = runtimes({
      maxItemBytes: 100_000,
      maxLogBytes: 256 * 1024,
      logger: { info: this.#note, warn: this.#note, error: this.#note },
      slots: new FreedSlots(),
      countsOf: () => this.#counts,
      environment: { ...process.env, REDIS_URL: 'redis://secret' },
      teardownMs: more.teardownMs ?? NEVER_MS,
    });
    const place = { project: 'demo', app: 'test', folder: more.folder ?? join(import.meta.dirname, folder) };
    const runtime = make(place, 'v1', {
      entrypoint: more.file ?? `${more.entry ?? 'main'}${ending}`,
      interpreter: more.interpreter ?? interpreter,
      replicas: more.replicas ?? 1,
      replicaConcurrency: concurrency,
      startupTimeoutMs: NEVER_MS,
      timeoutMs: more.timeoutMs ?? NEVER_MS,
      cancelGraceMs: more.cancelGraceMs ?? NEVER_MS,
      memoryBytes: more.memoryBytes,
      maxOutputBytes: more.maxOutputBytes ?? 200_000,
      debug: more.debug ?? false,
      env: more.env ?? { GREETING: 'hello' },
    });
    this.#runtimes.push(runtime);
    return runtime;
  }

  /** Creates a runtime, and resolves when it is ready. */
  async started(concurrency: number, more: More = {}): Promise<Runtime> {
    const runtime = this.make(concurrency, more);
    runtime.start();
    await reached(runtime, 'ready');
    return runtime;
  }

  async emptyFolder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'app-'));
    this.#folders.push(folder);
    return folder;
  }

  /** Writes an app in a folder of its own. */
  async appOf(code: Readonly<Record<LanguageName, string>>): Promise<string> {
    const folder = await this.emptyFolder();
    await writeFile(join(folder, `main${LANGUAGES[this.name].ending}`), this.of(code));
    return folder;
  }

  /** Ends what the tests have started. Call it after the last test. */
  async end(): Promise<void> {
    await Promise.all(this.#runtimes.splice(0).map((runtime) => runtime.close()));
    await Promise.all(this.#folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
  }

  readonly #note = (fields: object, text: string): void => {
    this.lines.push(text);
    this.logged.push({ ...fields, text });
  };

  #count(name: string, by = 1): void {
    this.counted[name] = (this.counted[name] ?? 0) + by;
  }

  readonly #counts: ProcessCounts = {
    moved: (from, to) => {
      if (from) this.#count(from, -1);
      this.#count(to);
    },
    started: (result) => this.#count(`start ${result}`),
    crashed: (how) => this.#count(`crash ${how}`),
  };
}

export const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Returns whether a process exists and is not a zombie. */
export const isRunning = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !stat.includes(') Z ');
};

/** Resolves when a process has ended. */
export async function gone(pid: number): Promise<void> {
  while (await isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Returns a call's plain result. */
export const resultOf = async (runtime: Runtime, fn: string, params: object = {}): Promise<unknown> =>
  JSON.parse((await new Call(runtime, fn, params).result()) ?? 'null');
