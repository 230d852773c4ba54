// Contract 7: the version of an app in a folder: a hash over its code files. Workers with the same files compute the same version.
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';

/**
 * Extensions of code files. Other files do not count: the working directory of a function is its app's folder. A function that writes a log or
 * a database there would otherwise be replaced at every call.
 */
const CODE = new Set([
  ...['.py', '.pyi', '.so', '.toml', '.cfg', '.ini', '.json', '.yaml', '.yml'],
  ...['.txt', '.md', '.html', '.jinja', '.jinja2', '.j2', '.sql', '.sh'],
  ...['.js', '.mjs', '.cjs', '.jsx', '.ts', '.mts', '.cts', '.tsx'],
]);

const TOOLS = new Set(['node_modules', '__pycache__']);

/** Returns whether tools fill a folder. These folders contain no code of the app: names with a leading dot (`.git`, `.venv`, caches) and `TOOLS`. */
export const isToolsFolder = (name: string): boolean => name.startsWith('.') || TOOLS.has(name);

/** Larger files count by size and time only, because reading gigabytes of weights would delay the start. */
const READ_AT_MOST = 4 * 1024 * 1024;

interface CodeFile {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** The code of an app at a moment. */
export interface CodeTree {
  /** Changes with the size or time of any file. It is cheap, because no file is read. */
  readonly signature: string;
  /** Absolute paths of all folders with code, including the app's folder. */
  readonly folders: readonly string[];
  readonly files: readonly CodeFile[];
}

export const isCodeName = (name: string): boolean => CODE.has(extname(name));

async function walk(root: string, at: string, folders: string[], files: CodeFile[]): Promise<void> {
  const entries = await readdir(join(root, at), { withFileTypes: true });
  // The folder is a virtual environment with another name than `.venv`.
  if (at !== '' && entries.some((entry) => entry.name === 'pyvenv.cfg')) return;
  folders.push(join(root, at));
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(at, entry.name);
    if (entry.isDirectory()) {
      if (!isToolsFolder(entry.name)) await walk(root, path, folders, files);
    } else if (isCodeName(entry.name)) {
      // A link counts as its target. A broken link, or a file that was just removed, is not code.
      const found = await stat(join(root, path)).catch(() => undefined);
      if (found?.isFile()) files.push({ path, size: found.size, mtimeMs: found.mtimeMs });
    }
  }
}

/** Lists an app's code. Rejects if the folder cannot be read. */
export async function readTree(folder: string): Promise<CodeTree> {
  const folders: string[] = [];
  const files: CodeFile[] = [];
  await walk(folder, '', folders, files);
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file.path}\0${file.size}\0${file.mtimeMs}\n`);
  return { signature: hash.digest('hex'), folders, files };
}

/** Returns the version of the listed code: 16 hex digits of a SHA-256 over names and contents. Rejects if a file was removed meanwhile. */
export async function versionOf(folder: string, tree: CodeTree): Promise<string> {
  const hash = createHash('sha256');
  for (const file of tree.files) {
    hash.update(`${file.path}\0${file.size}\0`);
    hash.update(file.size > READ_AT_MOST ? String(file.mtimeMs) : await readFile(join(folder, file.path)));
  }
  return hash.digest('hex').slice(0, 16);
}
