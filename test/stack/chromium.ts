// Chromium for tests of pages: from `CHROMIUM`, from PATH, or from Debian's packages, like the Redis of the stack.
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dataFolder, unpackPackages } from '@inference-proxy/supervisor';

const run = promisify(execFile);
const ANSWER_MS = 60_000;
const HOME = 'chromium';
const PACKAGE = 'chromium-headless-shell';
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

/** The browser: the path of the program and the variables of its environment. */
export interface Chromium {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

async function checked(path: string, env: Record<string, string> = {}): Promise<Chromium | undefined> {
  try {
    const options = { env: { ...process.env, ...env }, timeout: ANSWER_MS };
    // The program must exist as a file, because Playwright starts it by its path.
    const program = path.includes('/') ? path : (await run('which', [path])).stdout.trim();
    await run(program, ['--no-sandbox', '--version'], options);
    return { path: program, env };
  } catch {
    return undefined;
  }
}

async function inTree(tree: string): Promise<Chromium | undefined> {
  const libraries = (await readdir(join(tree, 'usr', 'lib')).catch(() => [])).filter((name) =>
    name.endsWith('-linux-gnu'),
  );
  // libpulse looks for its own part in a folder of the system.
  const paths = libraries.flatMap((name) => ['', 'pulseaudio'].map((part) => join(tree, 'usr', 'lib', name, part)));
  const program = join(tree, 'usr', 'lib', 'chromium', PACKAGE);
  return checked(program, { LD_LIBRARY_PATH: paths.join(':') });
}

/** Returns a Chromium, or the reason why there is none. */
export async function obtainChromium(cache = dataFolder()): Promise<Chromium | { readonly missing: string }> {
  const { CHROMIUM } = process.env;
  for (const name of CHROMIUM === undefined ? NAMES : [CHROMIUM]) {
    const found = await checked(name);
    if (found !== undefined) return found;
  }
  const kept = await inTree(join(cache, HOME));
  if (kept !== undefined) return kept;
  try {
    const home = await unpackPackages(cache, [PACKAGE], [PACKAGE], async (tree) =>
      (await inTree(tree)) === undefined ? undefined : join(cache, HOME),
    );
    const found = home === undefined ? undefined : await inTree(home);
    return found ?? { missing: 'the Chromium of apt-get does not run here' };
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return {
      missing: `there is no Chromium on PATH, and apt-get could not fetch it: ${(stderr || message).trim().split('\n').at(-1)}`,
    };
  }
}
