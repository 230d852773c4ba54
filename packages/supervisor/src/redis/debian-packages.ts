// Unpacks Debian's packages without root: apt-get works in folders of this process, and nothing is installed.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const LIMIT_MS = 120_000;

/** Returns the packages that this machine lacks: the wanted packages and their dependencies. */
async function missing(options: readonly string[], wanted: readonly string[]): Promise<string[]> {
  const { stdout } = await run(
    'apt-get',
    [...options, 'install', '--print-uris', '-qq', '-y', '--no-install-recommends', ...wanted],
    { timeout: LIMIT_MS },
  );
  return [...stdout.matchAll(/^'[^']*' ([^_\s]+)_/gm)].map((match) => match[1] as string);
}

/**
 * Fetches and unpacks packages as an ordinary user, with the dependencies that this machine lacks.
 *
 * @param cache folder for the downloads
 * @param wanted packages to unpack if this machine lacks them
 * @param always packages to unpack even if the machine has them
 * @param home checks the unpacked tree; returns the folder to keep it in, or undefined if the tree does not work
 * @returns the folder of the kept tree
 * @throws Error of apt-get
 */
export async function unpackPackages(
  cache: string,
  wanted: readonly string[],
  always: readonly string[],
  home: (tree: string) => Promise<string | undefined>,
): Promise<string | undefined> {
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
    // As root, apt would switch to a user that cannot read this folder.
    options.push('-o', 'APT::Sandbox::User=');
    await run('apt-get', [...options, 'update', '-qq'], { timeout: LIMIT_MS });
    const names = [...new Set([...always, ...(await missing(options, wanted))])];
    await run('apt-get', [...options, 'download', '-qq', ...names], { cwd: files, timeout: LIMIT_MS });
    for (const file of await readdir(files)) await run('dpkg', ['-x', join(files, file), tree]);
    const kept = await home(tree);
    if (kept === undefined) return undefined;
    await rename(tree, kept).catch((error: NodeJS.ErrnoException) => {
      // Another process was faster. Its tree is as good.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    return kept;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
