// Contract 7: prepares the TypeScript of an app when its version starts. Node strips types itself. esbuild compiles the files that need
// more: enums, decorators, JSX, and imports that only tsconfig or a bundler resolves.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, extname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { BuildFailure, Metafile } from 'esbuild';

/** Prints the files that type stripping refuses. The path is valid from `src/runtimes` and from `dist/runtimes`. */
const STRIPPABLE = fileURLToPath(new URL('../../harness/node/strippable.mjs', import.meta.url));
const STRIP_MS = 60_000;

const TYPESCRIPT = new Set(['.ts', '.mts', '.cts', '.tsx', '.jsx']);
const JSX = new Set(['.tsx', '.jsx']);
const DECORATOR = /^[ \t]*@[A-Za-z_$]/m;
/** A statement of a module at the start of a line, as esbuild writes modules. */
const MODULE_SYNTAX = /^(import|export)[ {*"']/m;
/** The oldest Node that runs apps. */
const TARGET = 'node22.18';

/** A file as the app's process loads it. */
interface CompiledFile {
  readonly format: 'module' | 'commonjs';
  readonly source: string;
}

/** What the app's process receives with `init`. Keys and values are URLs of files. */
export interface CompiledSources {
  readonly files: Record<string, CompiledFile>;
  /** By importing file and specifier: the file that Node would not find. */
  readonly imports: Record<string, Record<string, string>>;
}

/** Builds at this moment. esbuild's process ends after the last build. */
let building = 0;

/**
 * Returns the compiled files of an app, or undefined if Node loads every file as it is.
 *
 * @param folder absolute path @param entry the module's file in this folder
 * @throws Error with a text for the app's author: a file has an error, or an import does not exist
 */
export async function compiledSources(folder: string, entry: string): Promise<CompiledSources | undefined> {
  if (!TYPESCRIPT.has(extname(entry))) return undefined;
  const esbuild = await import('esbuild');
  building++;
  try {
    const { inputs } = await graphOf(esbuild, folder, entry);
    const imports = foreignImports(folder, inputs);
    const files = await filesToCompile(folder, Object.keys(inputs));
    if (files.length === 0 && Object.keys(imports).length === 0) return undefined;
    // With other imports, a file of plain types has to be compiled too, because Node checks its imports in the same way.
    return { files: await compile(esbuild, folder, files), imports };
  } catch (error) {
    throw new Error(textOf(error));
  } finally {
    building--;
    if (building === 0) await esbuild.stop();
  }
}

type Esbuild = typeof import('esbuild');

/** Returns every file of the app that the entry point imports, directly or through other files. Packages are not followed. */
async function graphOf(esbuild: Esbuild, folder: string, entry: string): Promise<Metafile> {
  const { metafile } = await esbuild.build({
    absWorkingDir: folder,
    entryPoints: [entry],
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    loader: { '.node': 'empty' },
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  return metafile;
}

/** Returns the imports whose file has another name than the specifier. */
function foreignImports(folder: string, inputs: Metafile['inputs']): CompiledSources['imports'] {
  const found: CompiledSources['imports'] = {};
  for (const [file, { imports }] of Object.entries(inputs)) {
    const from = join(folder, file);
    for (const { path, original, external } of imports) {
      if (external || original === undefined) continue;
      const target = join(folder, path);
      if (original.startsWith('.') && resolve(dirname(from), original) === target) continue;
      const importer = pathToFileURL(from).href;
      found[importer] = { ...found[importer], [original]: pathToFileURL(target).href };
    }
  }
  return found;
}

async function filesToCompile(folder: string, inputs: readonly string[]): Promise<string[]> {
  const typed = inputs.filter((file) => TYPESCRIPT.has(extname(file)));
  const chosen = new Set(typed.filter((file) => JSX.has(extname(file))));
  for (const file of typed) if (DECORATOR.test(await readFile(join(folder, file), 'utf8'))) chosen.add(file);
  const rest = typed.filter((file) => !chosen.has(file));
  if (rest.length > 0) {
    const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', STRIPPABLE, ...rest], {
      cwd: folder,
      timeout: STRIP_MS,
    });
    for (const file of JSON.parse(stdout) as string[]) chosen.add(file);
  }
  return [...chosen];
}

async function compile(esbuild: Esbuild, folder: string, files: readonly string[]): Promise<CompiledSources['files']> {
  const compiled: CompiledSources['files'] = {};
  await Promise.all(
    files.map(async (file) => {
      const path = join(folder, file);
      const { outputFiles } = await esbuild.build({
        absWorkingDir: folder,
        entryPoints: [file],
        bundle: false,
        platform: 'node',
        target: TARGET,
        ...(extname(file) === '.cts' && { format: 'cjs' }),
        jsx: 'automatic',
        sourcemap: 'inline',
        sourceRoot: pathToFileURL(`${dirname(path)}/`).href,
        outdir: dirname(path),
        write: false,
        logLevel: 'silent',
      });
      const source = outputFiles[0]?.text ?? '';
      const isModule = extname(file) !== '.cts' && MODULE_SYNTAX.test(source);
      compiled[pathToFileURL(path).href] = { format: isModule ? 'module' : 'commonjs', source };
    }),
  );
  return compiled;
}

/** Returns esbuild's first errors with their places. */
function textOf(error: unknown): string {
  const { errors } = error as Partial<BuildFailure>;
  if (errors === undefined) return error instanceof Error ? error.message : String(error);
  return errors
    .slice(0, 3)
    .map(({ text, location }) => (location ? `${location.file}:${location.line}: ${text}` : text))
    .join('; ');
}
