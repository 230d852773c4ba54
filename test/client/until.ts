// Waiting for what tells nobody of itself: a file, a look-up, a log line.
import { readFile, stat } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

const LOOK_EVERY_MS = 20;
/** Nothing that a test waits for takes longer; a wait without end would outlive its test. */
const LIMIT_MS = 120_000;

/** Looks until `look` gives something that is neither false nor undefined. @throws Error after two minutes */
export async function until<T>(
  look: () => T | false | undefined | Promise<T | false | undefined>,
  everyMs = LOOK_EVERY_MS,
): Promise<T> {
  const giveUpAt = performance.now() + LIMIT_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > giveUpAt) throw new Error(`waited in vain until ${look}`);
    await setTimeout(everyMs);
  }
}

/** What a file says, once it is there. */
export const fileSays = (path: string): Promise<string> => until(() => readFile(path, 'utf8').catch(() => undefined));

/** How large a file is when it has stopped growing: the same at two looks, half a second apart. */
export async function settledSize(path: string): Promise<number> {
  let before = -1;
  return until(async () => {
    const { size } = await stat(path).catch(() => ({ size: 0 }));
    const settled = size === before && size > 0;
    before = size;
    return settled && size;
  }, 500);
}
