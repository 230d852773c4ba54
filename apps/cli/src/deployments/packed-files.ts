// Chooses the files of a bundle: `.gitignore` in every folder, `.dockerignore`, and `include` and `exclude` of the manifest.
// Libraries read the patterns, because a file too many may be a secret. The form of `.dockerignore` differs from `.gitignore`: a pattern
// without a slash counts in the root only. Git's global ignore files do not count, because a build server does not have them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import dockerignoreModule from '@balena/dockerignore';
import ignore, { type Ignore } from 'ignore';
import { type DeploymentKeys, MANIFESTS } from './manifest-keys.ts';

/** The types describe an ES module, and the package is CommonJS with `default`. */
const dockerignore = dockerignoreModule.default;

/** Folders that tools fill, and files that often hold secrets. `include` cannot bring them back. */
const NEVER = ['.git/', '.venv/', 'node_modules/', '__pycache__/', '*.pyc', '.DS_Store', '.env', '.env.*'];

/** A rule file, and the folder to which its patterns relate. `at` is empty or ends with a slash. */
interface Rules {
  readonly at: string;
  readonly patterns: Ignore;
}

/** Patterns have the form of `.gitignore`. The hosted product writes `./` before patterns of the app's folder. */
const patternsOf = (lines: readonly string[]): Ignore => ignore().add(lines.map((line) => line.replace(/^\.\//, '/')));

/**
 * Returns the paths of the files and links to pack, relative to the folder, sorted.
 *
 * A virtual environment is left out, whatever its name is.
 */
export function packedFiles(
  folder: string,
  { include, exclude }: Pick<DeploymentKeys, 'include' | 'exclude'>,
): string[] {
  const never = patternsOf(NEVER);
  const excluded = patternsOf(exclude);
  const included = include.length > 0 ? patternsOf(include) : undefined;
  const docker = dockerRules(folder);
  const found: string[] = [];
  const walk = (at: string, outer: readonly Rules[]): void => {
    const entries = readdirSync(join(folder, at), { withFileTypes: true });
    if (at !== '' && entries.some(({ name }) => name === 'pyvenv.cfg')) return;
    const rules = [...outer, ...gitRules(folder, at)];
    for (const entry of entries) {
      const path = `${at}${entry.name}`;
      const name = entry.isDirectory() ? `${path}/` : path;
      if (never.ignores(name) || isIgnored(name, rules)) continue;
      if (entry.isDirectory()) {
        walk(name, rules);
        continue;
      }
      if (!entry.isFile() && !entry.isSymbolicLink()) continue;
      const isManifest = MANIFESTS.some((manifest) => manifest === path);
      const isChosen = !excluded.ignores(path) && (included?.ignores(path) ?? true) && !docker(path);
      if (isManifest || isChosen) found.push(path);
    }
  };
  walk('', []);
  return found.sort();
}

function gitRules(folder: string, at: string): Rules[] {
  const file = join(folder, at, '.gitignore');
  return existsSync(file) ? [{ at, patterns: ignore().add(readFileSync(file, 'utf8')) }] : [];
}

/** Returns whether git ignores a path. The rules of an inner folder win over the rules of an outer folder. */
function isIgnored(path: string, rules: readonly Rules[]): boolean {
  let ignored = false;
  for (const { at, patterns } of rules) {
    const result = patterns.test(path.slice(at.length));
    if (result.ignored) ignored = true;
    if (result.unignored) ignored = false;
  }
  return ignored;
}

function dockerRules(folder: string): (path: string) => boolean {
  const file = join(folder, '.dockerignore');
  if (!existsSync(file)) return () => false;
  const rules = dockerignore({ ignorecase: false }).add(readFileSync(file, 'utf8'));
  return (path) => rules.ignores(path);
}
