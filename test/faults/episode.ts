// One fault begins and ends, and the service recovers by itself.
import type { FaultOptions } from './faults.ts';
import { faults } from './faults.ts';
import type { Episode } from './figures.ts';
import type { Place } from './place.ts';

/** Runs that were under way at Redis' last write may be in the lost tail. */
const TAIL_MS = 10_000;

/** Resolves when calls of every kind succeed again. @throws Error if a kind does not succeed within minutes */
export async function episode(place: Place, name: string, options: FaultOptions): Promise<Episode> {
  const fault = faults[name];
  if (!fault) throw new Error(`there is no fault '${name}'; there are: ${Object.keys(faults).join(', ')}`);
  const beganAt = performance.now();
  const from = fault.tailLost ? beganAt - TAIL_MS : beganAt;
  const trouble = { from, to: Number.POSITIVE_INFINITY, ...(fault.tailLost && { tailLost: true }) };
  place.troubles.push(trouble);
  const overAt = (await fault.run(place, options)) ?? performance.now();
  const back = await place.recovered(overAt);
  await fault.mended?.(place);
  trouble.to = performance.now();
  return { ...trouble, name, overAt, ...back };
}
