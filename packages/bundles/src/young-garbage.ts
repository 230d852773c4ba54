// Frees the memory of buffers that are no longer used.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { type: 'minor' }) => void;
let collect: Collect | undefined;

/**
 * Collects young garbage, in about a millisecond. V8 collects on its own only after 64 MiB of new buffers, so every large archive would
 * raise the memory of its service by this size. The memory of an archive that is read in a stream is garbage at once.
 */
export function collectYoungGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as Collect;
    setFlagsFromString('--no-expose-gc');
  }
  collect({ type: 'minor' });
}
