// An app's version: a hash over the files that are its code, so that it changes when they do and is the same on every worker.
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';

/**
 * What counts as code. Not everything in the folder: a function's working directory is its app's folder, and one that writes
 * a log or a database there would be replaced at every call.
 */
const CODE = new Set([
  ...['.py', '.pyi', '.so', '.toml', '.cfg', '.ini', '.json', '.yaml', '.yml'],
  ...['.txt', '.md', '.html', '.jinja', '.jinja2', '.j2', '.sql', '.js', '.mjs', '.ts', '.sh'],
]);

const TOOLS = new Set(['node_modules', '__pycache__']);

/** A folder that tools fill, never the app's own code; all that start with a dot are (`.git`, `.venv`, caches). */
export const isToolsFolder = (name: string): boolean => name.startsWith('.') || TOOLS.has(name);

/** Files above this count by their size and time only: reading weights of gigabytes would hold up the start. */
const READ_AT_MOST = 4 * 1024 * 1024;

interface CodeFile {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** An app's code as it was at one moment. */
export interface CodeTree {
  /** Changes when a file's size or time does: cheap, nothing is read. */
  readonly signature: string;
  /** Absolute paths of all folders with code, the app's own among them. */
  readonly folders: readonly string[];
  readonly files: readonly CodeFile[];
}

export const isCodeName = (name: string): boolean => CODE.has(extname(name));

async function walk(root: string, at: string, folders: string[], files: CodeFile[]): Promise<void> {
  const entries = await readdir(join(root, at), { withFileTypes: true });
  // A virtual environment under another name than `.venv`.
  if (at !== '' && entries.some((entry) => entry.name === 'pyvenv.cfg')) return;
  folders.push(join(root, at));
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(at, entry.name);
    if (entry.isDirectory()) {
      if (!isToolsFolder(entry.name)) await walk(root, path, folders, files);
    } else if (isCodeName(entry.name)) {
      // A link counts as the file it names; one that leads nowhere, or a file that went away just now, is no code.
      const found = await stat(join(root, path)).catch(() => undefined);
      if (found?.isFile()) files.push({ path, size: found.size, mtimeMs: found.mtimeMs });
    }
  }
}

/** Lists an app's code. Rejects when the folder cannot be read. */
export async function readTree(folder: string): Promise<CodeTree> {
  const folders: string[] = [];
  const files: CodeFile[] = [];
  await walk(folder, '', folders, files);
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file.path}\0${file.size}\0${file.mtimeMs}\n`);
  return { signature: hash.digest('hex'), folders, files };
}

/** The version of the code listed: 16 hex digits of a SHA-256 over names and contents. Rejects when a file went away meanwhile. */
export async function versionOf(folder: string, tree: CodeTree): Promise<string> {
  const hash = createHash('sha256');
  for (const file of tree.files) {
    hash.update(`${file.path}\0${file.size}\0`);
    hash.update(file.size > READ_AT_MOST ? String(file.mtimeMs) : await readFile(join(folder, file.path)));
  }
  return hash.digest('hex').slice(0, 16);
}
