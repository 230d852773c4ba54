// Contract 8: runtimes of apps in JavaScript and TypeScript. Their replicas run harness/node.
import { fileURLToPath } from 'node:url';
import { typesOf } from './app-types.ts';
import { type CompiledSources, compiledSources } from './compiled-sources.ts';
import { javascriptEngine } from './engine.ts';
import { type FunctionOptions, type FunctionTerms, functionRuntimes } from './function-runtimes.ts';
import type { Command } from './keeper.ts';

/** The path is valid from `src/runtimes` and from `dist/runtimes`. */
const HARNESS = fileURLToPath(new URL('../../harness/node/main.mjs', import.meta.url));

/** Part of the memory limit that V8's heap may use. The rest is for buffers, code and stacks. */
const HEAP_SHARE = 0.75;
/** V8 has three spaces for young objects beside this heap. */
const SPACE_SHARE = 1 / 32;
/** In MiB. V8's own default. */
const LARGEST_SPACE = 64;
const MIB = 2 ** 20;

/** The compiled files, by version. */
const compiled = new WeakMap<FunctionTerms, Promise<CompiledSources | undefined>>();

/** Returns a function that creates the runtime of one version of a JavaScript app without starting it. */
export const nodeRuntimes = (options: FunctionOptions) =>
  functionRuntimes(options, async (folder, deployment, env, version) => {
    const { entrypoint, interpreter, memoryBytes } = deployment;
    const { kind, file } = await javascriptEngine(folder, interpreter, env.PATH ?? '');
    const typing = typesOf(folder, entrypoint, version);
    if (kind === 'bun') return { file, args: ['run', HARNESS], sources: blobOf({ types: await typing }) };
    if (kind === 'deno') {
      const args = ['run', '--allow-all', '--node-modules-dir=manual', HARNESS];
      return { file, args, sources: blobOf({ types: await typing }) };
    }
    // Once for each version, so that every process of the version runs the same code.
    const compiling = compiled.get(deployment) ?? compiledSources(folder, entrypoint);
    compiled.set(deployment, compiling);
    const [types, sources] = await Promise.all([typing, compiling]);
    return { ...bounded({ file, args: [...heapLimit(memoryBytes), HARNESS] }), sources: blobOf({ types, ...sources }) };
  });

/** Returns what the harness receives with `init`, or undefined for nothing. */
const blobOf = (content: object): Buffer | undefined => {
  const text = JSON.stringify(content);
  return text === '{}' ? undefined : Buffer.from(text);
};

/** V8's own limit depends on the machine's memory, so it can be far below or above the app's. */
const heapLimit = (memoryBytes: number | undefined): string[] =>
  memoryBytes === undefined
    ? []
    : [
        `--max-old-space-size=${Math.floor((memoryBytes * HEAP_SHARE) / MIB)}`,
        `--max-semi-space-size=${Math.min(LARGEST_SPACE, Math.max(1, Math.floor((memoryBytes * SPACE_SHARE) / MIB)))}`,
      ];

/** The keeper's bound of open files. */
const OPEN_FILES = 8_192;

/** Lowers the hard limit of open files, because Node raises its own limit to the hard limit. */
const bounded = ({ file, args }: Command): Command => ({
  file: '/bin/sh',
  args: ['-c', `ulimit -n ${OPEN_FILES} 2>/dev/null; exec "$0" "$@"`, file, ...args],
});
