// Frees the memory of buffers that are no longer used.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { type: 'minor' }) => void;
let collect: Collect | undefined;

/**
 * Collects young garbage, in about a millisecond. V8 collects on its own only after 64 MiB of new buffers, so every large archive would
 * raise the memory of its service by this size. Node's decompressor cannot reuse a buffer of its output.
 *
 * V8 gives the function `gc` only to contexts that begin with the flag `--expose-gc`. The flag is set while one such context is made, and
 * changes nothing else. As an option of Node, the flag would be part of every way to start a service, and would give `gc` to all code.
 */
export function collectYoungGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as Collect;
    setFlagsFromString('--no-expose-gc');
  }
  collect({ type: 'minor' });
}
