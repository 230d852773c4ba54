// Contract 7, "Versions": begins the roll-out of a version that exists, by version-activate.lua.
import { codeIn, type Script } from '../scripts.ts';
import { VERSION_STATES, type VersionState } from './version-record.ts';

export interface Activation {
  readonly app: string;
  readonly version: string;
  /** `sub` of the token. */
  readonly author?: string;
  /** `ROLL_OUT_TIMEOUT_S`, in ms. */
  readonly termMs: number;
}

/** Returns the state of the version, or undefined for an unknown version. */
export const activateScript: Script<Activation, VersionState | undefined> = {
  name: 'version-activate',
  encode: ({ app, version, author = '', termMs }) => [app, version, author, Math.round(termMs)],
  decode: (reply) => {
    const state = codeIn(reply, ['', ...VERSION_STATES]);
    return state === '' ? undefined : state;
  },
};
