// PROTOCOL.md, "From the worker": loads the files that the worker has compiled, in the place of the app's TypeScript.
import * as module from 'node:module';

/**
 * @typedef {object} Sources what `init` has as its blob; keys and values are URLs of files
 * @property {Record<string, { format: 'module' | 'commonjs', source: string }>} files
 * @property {Record<string, Record<string, string>>} imports by importing file and specifier
 */

/**
 * Makes every later import load the compiled files. Their source maps name the author's lines in stacks.
 *
 * @param {Sources} sources
 */
export function useCompiled({ files, imports }) {
  process.setSourceMapsEnabled(true);
  module.registerHooks({
    resolve: (specifier, context, next) => {
      const url = imports[context.parentURL ?? '']?.[specifier];
      return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
    },
    load: (url, context, next) => {
      const file = files[url];
      return file === undefined ? next(url, context) : { ...file, shortCircuit: true };
    },
  });
}
