// Contract 7, "Bundle rules": unpacks a bundle into a new folder. A bundle that breaks a rule leaves no files behind.
import { copyFile, mkdir, open, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readArchive } from './archive.ts';

/** The functions' user reads the files and may be another user than the worker's. */
const FOLDER_MODE = 0o755;
const modeOf = (executable: boolean): number => (executable ? 0o755 : 0o644);

/**
 * Unpacks into `folder`, which must not exist. Owners, dates and other modes of the archive are ignored.
 *
 * @throws ServiceError `invalid_bundle`; the error of `source` or of the file system
 */
export async function unpackBundle(source: AsyncIterable<Buffer>, folder: string): Promise<void> {
  await mkdir(folder, { mode: FOLDER_MODE });
  try {
    // Links are made last, so that no file can be written through a link.
    const links: { readonly path: string; readonly target: string }[] = [];
    await readArchive(source, async (entry) => {
      const path = join(folder, entry.path);
      await mkdir(entry.kind === 'folder' ? path : dirname(path), { recursive: true, mode: FOLDER_MODE });
      if (entry.kind === 'file') await write(path, entry.content, modeOf(entry.executable));
      else if (entry.kind === 'copy') await copyFile(join(folder, entry.of), path);
      else if (entry.kind === 'link') links.push({ path, target: entry.target });
    });
    for (const { path, target } of links) await symlink(target, path);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function write(path: string, content: AsyncIterable<Buffer>, mode: number): Promise<void> {
  // `wx` fails if anything has the name already.
  const file = await open(path, 'wx', mode);
  try {
    for await (const chunk of content) await file.write(chunk);
    await file.chmod(mode);
  } finally {
    await file.close();
  }
}
