// Contract 7, "Secrets": replaces the sealed form of an app's secret, by secret-reseal.lua.
import { numberIn, type Script } from '../scripts.ts';

export interface Resealed {
  readonly app: string;
  readonly name: string;
  /** The present entry of the store. */
  readonly before: string;
  readonly after: string;
}

/** Returns false if a user has set or removed the secret meanwhile. */
export const resealScript: Script<Resealed, boolean> = {
  name: 'secret-reseal',
  encode: ({ app, name, before, after }) => [app, name, before, after],
  decode: (reply) => numberIn(reply) === 1,
};
