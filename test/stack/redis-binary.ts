// Embedded Redis, first half: a server program of 7.0 or later (scripts that may run when memory is short need it), from PATH or from Debian's packages.
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { dataFolder } from './folders.ts';

const run = promisify(execFile);
const OLDEST = [7, 0] as const;
const NAMES = ['redis-server', 'valkey-server'];
const DOWNLOAD_LIMIT_MS = 120_000;

/** A server program and what it needs in its environment. */
export interface RedisBinary {
  readonly path: string;
  /** For a downloaded one: where its libraries are. */
  readonly libraries?: string;
  readonly version: string;
}

/** There is no Redis and none can be obtained: the text says what to type. */
export class NoRedis extends Error {
  constructor(why: string) {
    super(
      `${why}. Install Redis 7 or later with one of: brew install redis | sudo dnf install valkey | sudo apk add valkey | ` +
        'docker run -d -p 6379:6379 redis:7 (then REDIS_URL=redis://127.0.0.1:6379 npm start)',
    );
    this.name = 'NoRedis';
  }
}

/** Environment for running `binary`. */
export const redisEnvironment = (binary: RedisBinary): NodeJS.ProcessEnv => ({
  ...process.env,
  ...(binary.libraries !== undefined && { LD_LIBRARY_PATH: binary.libraries }),
});

/** `path` with its version, or undefined where it does not run or is too old. */
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

/** Whether a program of that name is in one of the folders of `path`. */
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

/** The server in a folder that packages were unpacked to; its libraries lie beside it. */
async function unpacked(folder: string): Promise<RedisBinary | undefined> {
  const parts = await readdir(join(folder, 'usr', 'lib')).catch(() => []);
  const libraries = parts.filter((part) => part.includes('-linux-')).map((part) => join(folder, 'usr', 'lib', part));
  for (const name of NAMES) {
    const found = await inspect(join(folder, 'usr', 'bin', name), libraries.join(':'));
    if (found) return found;
  }
  return undefined;
}

/** The packages that a server needs and this machine lacks; the first two always, since the program of one is a link into the other. */
async function packages(options: readonly string[]): Promise<string[]> {
  const { stdout } = await run(
    'apt-get',
    [...options, 'install', '--print-uris', '-qq', '-y', '--no-install-recommends', 'redis-server'],
    { timeout: DOWNLOAD_LIMIT_MS },
  );
  const missing = [...stdout.matchAll(/^'[^']*' ([^_\s]+)_/gm)].map((match) => match[1] as string);
  return [...new Set(['redis-server', 'redis-tools', ...missing])];
}

/** Debian's packages, fetched and unpacked as an ordinary user: apt is given folders of its own, nothing is installed. */
async function download(cache: string): Promise<RedisBinary | undefined> {
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, 'fetch-'));
  try {
    const [lists, archives, files, tree] = ['lists', 'archives', 'files', 'tree'].map((name) => join(work, name)) as [
      string,
      string,
      string,
      string,
    ];
    for (const folder of [join(lists, 'partial'), join(archives, 'archives', 'partial'), files, tree])
      await mkdir(folder, { recursive: true });
    const options = ['-o', `Dir::State::lists=${lists}`, '-o', `Dir::Cache=${archives}`, '-o', 'Debug::NoLocking=1'];
    // As root apt would drop to a user that cannot reach our folder.
    options.push('-o', 'APT::Sandbox::User=');
    await run('apt-get', [...options, 'update', '-qq'], { timeout: DOWNLOAD_LIMIT_MS });
    const names = await packages(options);
    await run('apt-get', [...options, 'download', '-qq', ...names], { cwd: files, timeout: DOWNLOAD_LIMIT_MS });
    for (const file of await readdir(files)) await run('dpkg', ['-x', join(files, file), tree]);
    const found = await unpacked(tree);
    if (!found) return undefined;
    const home = join(cache, `redis-${found.version}`);
    await rename(tree, home).catch(async (error: NodeJS.ErrnoException) => {
      // Somebody else was as fast: theirs is as good.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    return await unpacked(home);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
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
 * A Redis or Valkey of 7.0 or later: on PATH, downloaded before, or downloaded now from Debian's or Ubuntu's packages (2 to 5 s, 7 MB, no root).
 *
 * @param say told, in words for the terminal, when something takes a while
 * @throws NoRedis where there is none to be had
 */
export async function obtainRedis(
  say: (text: string) => void,
  options: { path?: string; cache?: string } = {},
): Promise<RedisBinary> {
  const { path = process.env.PATH ?? '', cache = dataFolder() } = options;
  const present = (await onPath(path)) ?? (await cached(cache));
  if (present) return present;
  if (!(await runnable('apt-get', path)) || !(await runnable('dpkg', path)))
    throw new NoRedis('No Redis 7 on PATH, and no apt-get to fetch one with');
  say('No Redis 7 on PATH: fetching one with apt-get, into .data (nothing is installed)');
  const fetched = await download(cache).catch((error: Error & { stderr?: string }) => {
    const reason = (error.stderr ?? error.message).trim().split('\n').at(-1);
    throw new NoRedis(`No Redis 7 on PATH, and apt-get could not fetch one (${reason})`);
  });
  if (!fetched) throw new NoRedis('No Redis 7 on PATH, and the one apt-get has is older or does not run here');
  return fetched;
}
