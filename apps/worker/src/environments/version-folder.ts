// Contract 7, "Dependencies": the folder of a version, and its links to environments. A link of a bundle is never absolute, so an absolute
// link is one of `linkTo`.
import { cp, lstat, readlink, rename, rm, symlink } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';

/** Returns whether the app itself has an entry of this name. */
export async function brings(folder: string, name: string): Promise<boolean> {
  const path = join(folder, name);
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && !(await isOwnLink(path));
}

const isOwnLink = async (path: string): Promise<boolean> => isAbsolute(await readlink(path).catch(() => ''));

/** Makes `path` a link to `target`, in one step. */
export async function linkTo(target: string, path: string): Promise<void> {
  if ((await readlink(path).catch(() => undefined)) === target) return;
  const fresh = `${path}.new`;
  await rm(fresh, { recursive: true, force: true });
  await symlink(target, fresh);
  await rename(fresh, path);
}

/** Copies the folder of a version without links to environments. */
export async function copyApp(source: string, target: string): Promise<void> {
  const filter = async (path: string): Promise<boolean> => !(await isOwnLink(path));
  await cp(source, target, { recursive: true, verbatimSymlinks: true, filter });
}
