// Contract 8: runtimes of Python apps. Their replicas run harness/python.
import { fileURLToPath } from 'node:url';
import { type FunctionOptions, functionRuntimes } from './function-runtimes.ts';
import { pythonInterpreter } from './interpreter.ts';

/** The path is valid from `src/runtimes` and from `dist/runtimes`. */
const HARNESS = fileURLToPath(new URL('../../harness/python', import.meta.url));

/** Returns a function that creates the runtime of one version of a Python app without starting it. */
export const pythonRuntimes = (options: FunctionOptions) =>
  functionRuntimes(options, async (folder, { interpreter }, env) => {
    const python = await pythonInterpreter(folder, interpreter, env.PATH ?? '');
    return { file: python, args: ['-X', 'faulthandler', '-u', HARNESS], python };
  });
