// Finds the program of the stack's Redis: 7.0 or later, whose scripts can run when memory is short. From PATH or Debian's packages.
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { dataFolder } from '../folders.ts';
import { unpackPackages } from './debian-packages.ts';

const run = promisify(execFile);
const OLDEST = [7, 0] as const;
const NAMES = ['redis-server', 'valkey-server'];

/** A server program and its environment. */
export interface RedisBinary {
  readonly path: string;
  /** The folders of its libraries, if the program was downloaded. */
  readonly libraries?: string;
  readonly version: string;
}

/** There is no Redis, and none can be fetched. The message has the commands to type. */
export class NoRedis extends Error {
  constructor(why: string) {
    super(
      `${why}. Install Redis 7 or later with one of: brew install redis | sudo dnf install valkey | sudo apk add valkey | ` +
        'docker run -d -p 6379:6379 redis:7 (then REDIS_URL=redis://127.0.0.1:6379 npm start)',
    );
    this.name = 'NoRedis';
  }
}

/** Returns the environment for `binary`. */
export const redisEnvironment = (binary: RedisBinary): NodeJS.ProcessEnv => ({
  ...process.env,
  ...(binary.libraries !== undefined && { LD_LIBRARY_PATH: binary.libraries }),
});

/** Returns the program with its version, or undefined if the program does not run or is too old. */
async function inspect(path: string, libraries?: string): Promise<RedisBinary | undefined> {
  const candidate = { path, version: '', ...(libraries && { libraries }) };
  try {
    await access(path, constants.X_OK);
    const { stdout } = await run(path, ['--version'], { env: redisEnvironment(candidate), timeout: 5000 });
    const found = /v=(\d+)\.(\d+)\.\d+/.exec(stdout);
    if (!found) return undefined;
    const [major, minor] = [Number(found[1]), Number(found[2])];
    const enough = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
    return enough ? { ...candidate, version: found[0].slice(2) } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether one of the folders of `path` has a program of that name. */
async function runnable(name: string, path: string): Promise<boolean> {
  for (const folder of path.split(delimiter).filter(Boolean)) {
    const here = await access(join(folder, name), constants.X_OK).then(
      () => true,
      () => false,
    );
    if (here) return true;
  }
  return false;
}

async function onPath(path: string): Promise<RedisBinary | undefined> {
  for (const folder of path.split(delimiter).filter(Boolean)) {
    for (const name of NAMES) {
      const found = await inspect(join(folder, name));
      if (found) return found;
    }
  }
  return undefined;
}

/** Returns the server in a folder of unpacked packages, which also has the server's libraries. */
async function unpacked(folder: string): Promise<RedisBinary | undefined> {
  const parts = await readdir(join(folder, 'usr', 'lib')).catch(() => []);
  const libraries = parts.filter((part) => part.includes('-linux-')).map((part) => join(folder, 'usr', 'lib', part));
  for (const name of NAMES) {
    const found = await inspect(join(folder, 'usr', 'bin', name), libraries.join(':'));
    if (found) return found;
  }
  return undefined;
}

/** Fetches and unpacks Debian's packages as an ordinary user. */
async function download(cache: string): Promise<RedisBinary | undefined> {
  // Both packages are needed, because the program in one is a link to the program in the other.
  const home = await unpackPackages(cache, ['redis-server'], ['redis-server', 'redis-tools'], async (tree) => {
    const found = await unpacked(tree);
    return found && join(cache, `redis-${found.version}`);
  });
  return home === undefined ? undefined : unpacked(home);
}

async function cached(cache: string): Promise<RedisBinary | undefined> {
  const entries = await readdir(cache).catch(() => []);
  for (const entry of entries.filter((name) => name.startsWith('redis-'))) {
    const found = await unpacked(join(cache, entry));
    if (found) return found;
  }
  return undefined;
}

/**
 * Returns a Redis or Valkey of 7.0 or later: from PATH, from an earlier download, or downloaded now.
 * The download comes from Debian's or Ubuntu's packages (2 to 5 s, 7 MB, no root).
 *
 * @param say called with a message before a step that takes a while
 * @throws NoRedis if there is none and none can be fetched
 */
export async function obtainRedis(
  say: (text: string) => void,
  options: { path?: string; cache?: string } = {},
): Promise<RedisBinary> {
  const { path = process.env.PATH ?? '', cache = dataFolder() } = options;
  const present = (await onPath(path)) ?? (await cached(cache));
  if (present) return present;
  if (!(await runnable('apt-get', path)) || !(await runnable('dpkg', path)))
    throw new NoRedis('No Redis 7 on PATH, and no apt-get to fetch it');
  say('No Redis 7 on PATH: fetching Redis with apt-get into .data (nothing is installed)');
  const fetched = await download(cache).catch((error: Error & { stderr?: string }) => {
    const reason = (error.stderr ?? error.message).trim().split('\n').at(-1);
    throw new NoRedis(`No Redis 7 on PATH, and apt-get could not fetch it (${reason})`);
  });
  if (!fetched) throw new NoRedis('No Redis 7 on PATH, and the Redis of apt-get is older or does not run here');
  return fetched;
}
