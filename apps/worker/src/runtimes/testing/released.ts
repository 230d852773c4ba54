// Whether memory is free again, as observed by the garbage collector. A memory figure would be less certain.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const ROUNDS = 50;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Returns whether nothing refers to an object. Pending work may still refer to the object, so this checks several times. */
export async function released(object: WeakRef<object>): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collect();
    if (object.deref() === undefined) return true;
  }
  return false;
}
