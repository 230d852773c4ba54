// Debian's packages without root: apt is given folders of its own, files are unpacked, nothing is installed.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const LIMIT_MS = 120_000;

/** What of these packages and of what they need this machine lacks. */
async function missing(options: readonly string[], wanted: readonly string[]): Promise<string[]> {
  const { stdout } = await run(
    'apt-get',
    [...options, 'install', '--print-uris', '-qq', '-y', '--no-install-recommends', ...wanted],
    { timeout: LIMIT_MS },
  );
  return [...stdout.matchAll(/^'[^']*' ([^_\s]+)_/gm)].map((match) => match[1] as string);
}

/**
 * Fetches and unpacks packages, with those they need and this machine lacks, as an ordinary user.
 *
 * @param cache folder in which it works
 * @param wanted those to be had
 * @param always unpacked even where the machine has them
 * @param home says where the unpacked tree is kept, once it is seen to work; undefined: it does not
 * @returns where it is kept
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
    // As root apt would drop to a user that cannot reach our folder.
    options.push('-o', 'APT::Sandbox::User=');
    await run('apt-get', [...options, 'update', '-qq'], { timeout: LIMIT_MS });
    const names = [...new Set([...always, ...(await missing(options, wanted))])];
    await run('apt-get', [...options, 'download', '-qq', ...names], { cwd: files, timeout: LIMIT_MS });
    for (const file of await readdir(files)) await run('dpkg', ['-x', join(files, file), tree]);
    const kept = await home(tree);
    if (kept === undefined) return undefined;
    await rename(tree, kept).catch((error: NodeJS.ErrnoException) => {
      // Somebody else was as fast: theirs is as good.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    return kept;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
