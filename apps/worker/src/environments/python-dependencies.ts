// Contract 7, "Dependencies": the list of Python packages of an app, from the manifest, `requirements.txt` or `pyproject.toml`.
import { readFile, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { parse } from 'smol-toml';
import type { BuildKeys } from '../deployments/build-keys.ts';
import { asTable } from '../deployments/manifest-text.ts';
import { BuildFailed } from './build-failed.ts';
import { type Requirement, requirementLines } from './requirement-lines.ts';

export interface PythonDependencies {
  /** Where the list is from. */
  readonly source: string;
  /** Lines of a requirements file without references to other files. */
  readonly lines: readonly string[];
  readonly constraints: readonly string[];
  /** Whether a line names a path in the app's folder. The environment then depends on the app's code. */
  readonly isLocal: boolean;
}

const REQUIREMENTS = 'requirements.txt';
const PYPROJECT = 'pyproject.toml';
const LARGEST_FILE = 2 ** 20;
const MOST_FILES = 50;

/**
 * Returns the packages of an app, or undefined if the app names none. The first source that exists counts: `[dependencies.paths] pip`,
 * `[dependencies.pip]`, `requirements.txt`, `pyproject.toml`.
 *
 * @throws BuildFailed if the list cannot be read, or names a path out of the app's folder
 */
export async function pythonDependencies(folder: string, build: BuildKeys): Promise<PythonDependencies | undefined> {
  const list = new RequirementList(folder);
  const source = await list.readFirst(build);
  return source === undefined || list.lines.length === 0 ? undefined : { source, ...list.read };
}

class RequirementList {
  readonly lines: string[] = [];
  readonly #constraints: string[] = [];
  #isLocal = false;
  readonly #seen = new Set<string>();

  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get read(): Omit<PythonDependencies, 'source'> {
    return { lines: this.lines, constraints: this.#constraints, isLocal: this.#isLocal };
  }

  /** Reads the first source that exists, and returns its name. */
  async readFirst({ pip, pipFile }: BuildKeys): Promise<string | undefined> {
    if (pipFile !== undefined) {
      await this.#addFile(pipFile, false);
      return pipFile;
    }
    if (pip !== undefined) {
      this.lines.push(...[...pip].sort());
      return '[dependencies.pip]';
    }
    if ((await this.#text(REQUIREMENTS)) !== undefined) {
      await this.#addFile(REQUIREMENTS, false);
      return REQUIREMENTS;
    }
    const project = await this.#text(PYPROJECT);
    if (project === undefined) return undefined;
    for (const line of projectLines(project)) await this.#add(line, PYPROJECT, false);
    return PYPROJECT;
  }

  async #addFile(path: string, constraints: boolean, from = 'the manifest'): Promise<void> {
    const key = `${path} ${constraints}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    if (this.#seen.size > MOST_FILES) throw new BuildFailed(`${path}: more than ${MOST_FILES} files of requirements`);
    const text = await this.#text(path, from);
    if (text === undefined) throw new BuildFailed(`${path} does not exist in the app's folder`);
    for (const line of requirementLines(text)) await this.#add(line, path, constraints);
  }

  async #add(line: Requirement, from: string, constraints: boolean): Promise<void> {
    if (line.kind === 'file') {
      const path = join(dirname(from), line.path);
      if (isAbsolute(line.path) || line.path.includes('://')) throw leaves(from, line.path);
      await this.#addFile(path, constraints || line.constraints, from);
      return;
    }
    if (line.kind === 'local') {
      await this.#inside(line.path, from).catch((error: unknown) => {
        throw error instanceof BuildFailed
          ? error
          : new BuildFailed(`${from} names ${line.path}, which does not exist`);
      });
      this.#isLocal = true;
    }
    (constraints ? this.#constraints : this.lines).push(line.text);
  }

  /** Returns the text of a file, or undefined if the file does not exist. */
  async #text(path: string, from = 'the app'): Promise<string | undefined> {
    const file = await this.#inside(path, from).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (file === undefined) return undefined;
    const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
      throw new BuildFailed(`${path} cannot be read: ${error.code}`);
    });
    if (bytes.length > LARGEST_FILE) throw new BuildFailed(`${path} is larger than 1 MiB`);
    return bytes.toString('utf8');
  }

  /** Returns the real path of a path in the app's folder. @throws BuildFailed if the path leaves the folder; ENOENT */
  async #inside(path: string, from: string): Promise<string> {
    if (isAbsolute(path) || path.includes(':')) throw leaves(from, path);
    const file = resolve(this.#folder, path);
    if (isOutside(this.#folder, file)) throw leaves(from, path);
    const real = await realpath(file);
    if (isOutside(await realpath(this.#folder), real)) throw leaves(from, path);
    return real;
  }
}

function isOutside(folder: string, file: string): boolean {
  const path = relative(folder, file);
  return path === '..' || path.startsWith('../') || isAbsolute(path);
}

const leaves = (from: string, path: string): BuildFailed =>
  new BuildFailed(`${from} names ${JSON.stringify(path)}: expected a path below the app's folder`);

/** Returns `[project] dependencies`. @throws BuildFailed */
function projectLines(text: string): Requirement[] {
  let root: Record<string, unknown>;
  try {
    root = parse(text);
  } catch (error) {
    throw new BuildFailed(`${PYPROJECT} is not TOML: ${error instanceof Error ? error.message : String(error)}`);
  }
  const { dependencies = [], dynamic = [] } = asTable(root.project) ?? {};
  if (Array.isArray(dynamic) && dynamic.includes('dependencies'))
    throw new BuildFailed(`${PYPROJECT} computes its dependencies: list the packages in ${REQUIREMENTS}`);
  if (
    !Array.isArray(dependencies) ||
    !dependencies.every((one) => typeof one === 'string' && !/[\r\n]|^\s*-/.test(one))
  )
    throw new BuildFailed(`${PYPROJECT}: expected a list of packages as [project] dependencies`);
  return requirementLines(dependencies.join('\n'));
}
