// Contract 7, "Deploy a version": records a version and begins its roll-out, by version-deploy.lua.
import { codeIn, listIn, type Script } from '../scripts.ts';
import { VERSION_STATES, type VersionState } from './version-record.ts';

/** `activate`: the version becomes active when it is ready. `build`: it stays `ready`. */
export type RollOutMode = 'activate' | 'build';

export interface NewVersion {
  readonly app: string;
  /** 64 hex digits. */
  readonly version: string;
  /** SHA-256 of the archive, 64 hex digits. */
  readonly bundle: string;
  /** Bytes of the archive. */
  readonly size: number;
  /** Text of the manifest, if the bundle has a manifest. */
  readonly manifest?: string;
  /** `sub` of the token. */
  readonly author?: string;
  readonly mode: RollOutMode;
  /** `ROLL_OUT_TIMEOUT_S`, in ms. */
  readonly termMs: number;
}

export interface Deployed {
  /** False if the version existed before. */
  readonly created: boolean;
  readonly state: VersionState;
}

export const deployScript: Script<NewVersion, Deployed> = {
  name: 'version-deploy',
  encode: ({ app, version, bundle, size, manifest = '', author = '', mode, termMs }) => [
    ...[app, version, bundle, size, manifest, author, mode],
    Math.round(termMs),
  ],
  decode: (reply) => {
    const [created, state] = listIn(reply);
    return { created: created === 1, state: codeIn(state, VERSION_STATES) };
  },
};
