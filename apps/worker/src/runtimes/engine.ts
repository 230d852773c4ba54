// Contract 7: finds the engine of a JavaScript app: Node, Bun or Deno.
import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { spawnFailure } from './spawn-failure.ts';

const PROBE_MS = 20_000;
/** The harness loads TypeScript with type stripping and module hooks. Both are in Node from this version on. */
const LOWEST_NODE = [22, 18] as const;

/** Engines that a manifest selects by name. They are looked up on PATH. */
const NAMED = ['bun', 'deno'] as const;

export interface Engine {
  readonly kind: 'node' | (typeof NAMED)[number];
  /** Absolute path. */
  readonly file: string;
}

/** The lowest version that was found for each Node, by path. */
const checked = new Map<string, Promise<void>>();

/**
 * Returns the engine of an app: by default the Node that runs the worker.
 *
 * @param configured the manifest's `[runtime.node] node`: `bun`, `deno`, or the path of a Node, relative to the app's folder or absolute
 * @param path the app's PATH
 * @throws Error with a text for the app's author: the engine is missing or too old
 */
export async function javascriptEngine(folder: string, configured: string | undefined, path: string): Promise<Engine> {
  if (configured === undefined) return { kind: 'node', file: process.execPath };
  const named = NAMED.find((name) => name === configured);
  if (named !== undefined) return { kind: named, file: await onPath(named, path) };
  const file = isAbsolute(configured) ? configured : join(folder, configured);
  await known(file, path);
  return { kind: 'node', file };
}

async function onPath(name: string, path: string): Promise<string> {
  for (const folder of path.split(delimiter).filter(isAbsolute)) {
    const file = join(folder, name);
    if (
      await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return file;
  }
  throw new Error(
    `[runtime.node] node: ${name} is not on PATH. Install ${name} where the worker runs, or remove the key to use Node`,
  );
}

async function known(file: string, path: string): Promise<void> {
  const probed = checked.get(file) ?? probe(file, path);
  checked.set(file, probed);
  try {
    await probed;
  } catch (error) {
    checked.delete(file); // the engine may be installed before the next start
    throw error;
  }
}

function probe(file: string, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const env = { PATH: path };
  const missing = (error: Error | null): void =>
    reject(new Error(`no Node at ${file}: ${error ? spawnFailure(error, env) : 'it prints no version'}`));
  const answered = (error: Error | null, stdout: string): void => {
    const version = /^v(\d+)\.(\d+)\./.exec(stdout.trim());
    if (error || version === null) {
      missing(error);
      return;
    }
    const [major, minor] = [Number(version[1]), Number(version[2])];
    if (major > LOWEST_NODE[0] || (major === LOWEST_NODE[0] && minor >= LOWEST_NODE[1])) resolve();
    else reject(new Error(`${file} is Node ${stdout.trim()}; ${LOWEST_NODE.join('.')} or newer is needed`));
  };
  try {
    execFile(file, ['--version'], { env, timeout: PROBE_MS }, answered);
  } catch (error) {
    missing(error as Error); // `execFile` throws E2BIG
  }
  return promise;
}
