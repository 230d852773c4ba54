// Contract 7, "Versions": removes old versions of a project's apps, by versions-trim.lua.
import { numberIn, type Script } from '../scripts.ts';

/** Takes the number of versions of an app that stay. Returns the number of removed versions. */
export const trimScript: Script<number, number> = {
  name: 'versions-trim',
  encode: (keep) => [keep],
  decode: numberIn,
};
