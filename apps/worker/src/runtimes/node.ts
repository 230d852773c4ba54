// Contract 8: runtimes of apps in JavaScript and TypeScript. Their replicas run harness/node.
import { fileURLToPath } from 'node:url';
import { javascriptEngine } from './engine.ts';
import { type FunctionOptions, functionRuntimes } from './function-runtimes.ts';

/** The path is valid from `src/runtimes` and from `dist/runtimes`. */
const HARNESS = fileURLToPath(new URL('../../harness/node/main.mjs', import.meta.url));

/** Part of the memory limit that V8's heap may use. The rest is for buffers, code and stacks. */
const HEAP_SHARE = 0.75;
const MIB = 2 ** 20;

/** Returns a function that creates the runtime of one version of a JavaScript app without starting it. */
export const nodeRuntimes = (options: FunctionOptions) =>
  functionRuntimes(options, async (folder, { interpreter, memoryBytes }, env) => {
    const { kind, file } = await javascriptEngine(folder, interpreter, env.PATH ?? '');
    if (kind === 'bun') return { file, args: ['run', HARNESS] };
    if (kind === 'deno') return { file, args: ['run', '--allow-all', '--node-modules-dir=manual', HARNESS] };
    return { file, args: [...heapLimit(memoryBytes), HARNESS] };
  });

/** V8's own limit depends on the machine's memory, so it can be far below or above the app's. */
const heapLimit = (memoryBytes: number | undefined): string[] =>
  memoryBytes === undefined ? [] : [`--max-old-space-size=${Math.floor((memoryBytes * HEAP_SHARE) / MIB)}`];
