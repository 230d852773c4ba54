// Whether memory is free again: by the garbage collector itself, not by a figure.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const ROUNDS = 50;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Whether nothing refers to an object any more. Work that is under way may still refer to it, so this looks several times. */
export async function released(object: WeakRef<object>): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collect();
    if (object.deref() === undefined) return true;
  }
  return false;
}
