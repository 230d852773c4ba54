// Prometheus' checker of alert rules: from PATH, or from Debian's packages, like the Redis of the stack.

import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dataFolder, unpackPackages } from '@inference-proxy/supervisor';

const run = promisify(execFile);
const ANSWER_MS = 30_000;

const works = (path: string): Promise<boolean> =>
  run(path, ['--version'], { timeout: ANSWER_MS }).then(
    () => true,
    () => false,
  );

const inTree = (tree: string): string => join(tree, 'usr', 'bin', 'promtool');

/** Returns the path of `promtool`, or the reason why there is none. */
export async function obtainPromtool(cache = dataFolder()): Promise<{ path: string } | { missing: string }> {
  if (await works('promtool')) return { path: 'promtool' };
  const kept = (await readdir(cache).catch(() => [])).filter((name) => name === 'promtool');
  for (const name of kept) if (await works(inTree(join(cache, name)))) return { path: inTree(join(cache, name)) };
  try {
    // The program is static. The packages that apt would add contain web pages of the server.
    const home = await unpackPackages(cache, [], ['prometheus'], async (tree) =>
      (await works(inTree(tree))) ? join(cache, 'promtool') : undefined,
    );
    return home === undefined ? { missing: 'the promtool of apt-get does not run here' } : { path: inTree(home) };
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return {
      missing: `there is no promtool on PATH, and apt-get could not fetch it: ${(stderr || message).trim().split('\n').at(-1)}`,
    };
  }
}
