// Contract 1, "Parameters and types": the compiler's view of an app, with the options of its `tsconfig.json`.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getLibFiles, ts } from '@ts-morph/common';

/** Declares the engine's types that have a meaning here. The whole library of browsers would double the time. */
const WEB = fileURLToPath(new URL('web.d.ts', import.meta.url));

/** A folder that exists in the compiler's host only. */
const LIBRARY = '/typescript-library/';

/** Options without a `tsconfig.json`. */
const DEFAULTS = {
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  jsx: ts.JsxEmit.ReactJSX,
};

/** Options that are the same for every app. Values in `tsconfig.json` do not apply. */
const OURS = {
  target: ts.ScriptTarget.ES2024,
  lib: ['lib.es2024.d.ts', 'lib.esnext.d.ts'],
  strict: true,
  // Without this option, a type has no `null` and no `undefined`.
  strictNullChecks: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  // Files are read only if the entry file imports them.
  types: [],
};

/**
 * Returns whether the language or the engine declares the types of a file.
 *
 * @param {ts.Program} program
 * @param {ts.SourceFile} file
 */
export const isLibrary = (program, file) =>
  file.fileName === WEB ||
  program.isSourceFileDefaultLibrary(file) ||
  file.fileName.includes('/node_modules/@types/node/');

/**
 * Returns the program of an app and its entry file.
 *
 * @param {string} folder absolute path
 * @param {string} entry
 */
export function programOf(folder, entry) {
  const file = join(folder, entry);
  const options = { ...DEFAULTS, ...configured(folder), ...OURS };
  const program = ts.createProgram({ rootNames: [file, WEB], options, host: hostOf(options) });
  const source = program.getSourceFile(file);
  if (source === undefined) throw new Error(`${entry} cannot be read`);
  return { program, source };
}

/**
 * Returns a host that reads files from the disk, and the language's own declarations from the package of the compiler.
 *
 * @param {ts.CompilerOptions} options
 */
function hostOf(options) {
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists } = host;
  const library = new Map(getLibFiles().map(({ fileName, text }) => [LIBRARY + fileName, text]));
  return Object.assign(host, {
    getDefaultLibLocation: () => LIBRARY,
    /** @param {string} file */
    readFile: (file) => library.get(file) ?? readFile.call(host, file),
    /** @param {string} file */
    fileExists: (file) => library.has(file) || fileExists.call(host, file),
  });
}

/** @param {string} folder */
function configured(folder) {
  const file = join(folder, 'tsconfig.json');
  if (!ts.sys.fileExists(file)) return {};
  const { config } = ts.readConfigFile(file, ts.sys.readFile);
  // Only the options are needed, so no file is looked up.
  const { options } = ts.parseJsonConfigFileContent({ ...config, files: [] }, ts.sys, folder);
  return options;
}
