// One thing goes wrong and is over; service returns by itself.
import type { FaultOptions } from './faults.ts';
import { faults } from './faults.ts';
import type { Episode } from './figures.ts';
import type { Place } from './place.ts';

/** What was under way when Redis last wrote may be in the tail that it loses. */
const TAIL_MS = 10_000;

/** Resolves when calls of every kind succeed again. @throws Error where some do not within minutes */
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
