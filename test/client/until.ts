// Polls for conditions that send no notification: a file, a look-up, a log line.
import { readFile, stat } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

const LOOK_EVERY_MS = 20;
/** No condition of a test takes longer. A wait without a limit would outlive its test. */
const LIMIT_MS = 120_000;

/** Polls until `look` returns a value other than false and undefined. @throws Error after two minutes */
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

/** Returns the content of a file as soon as the file exists. */
export const fileSays = (path: string): Promise<string> => until(() => readFile(path, 'utf8').catch(() => undefined));

/** Returns the size of a file that has stopped growing: two looks, half a second apart, gave the same size. */
export async function settledSize(path: string): Promise<number> {
  let before = -1;
  return until(async () => {
    const { size } = await stat(path).catch(() => ({ size: 0 }));
    const settled = size === before && size > 0;
    before = size;
    return settled && size;
  }, 500);
}
