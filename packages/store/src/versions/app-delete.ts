// Contract 7, "Apps": removes a deployed app with all its versions, by app-delete.lua.
import { numberIn, type Script } from '../scripts.ts';

/** Returns whether a version of the app existed. */
export const deleteScript: Script<string, boolean> = {
  name: 'app-delete',
  encode: (app) => [app],
  decode: (reply) => numberIn(reply) === 1,
};
