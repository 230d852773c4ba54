// Contract 7, "Versions": the record of a version, as the store keeps it. The scripts of this folder write it.

/** The states of contract 7. */
export const VERSION_STATES = ['building', 'ready', 'active', 'failed', 'retired'] as const;
export type VersionState = (typeof VERSION_STATES)[number];

export interface VersionRecord {
  readonly app: string;
  readonly version: string;
  readonly state: VersionState;
  /** The version is the target of the app's roll-out. */
  readonly rollingOut: boolean;
  /** SHA-256 of the archive. */
  readonly bundle: string;
  /** Bytes of the archive. */
  readonly size: number;
  readonly manifest?: string;
  readonly author?: string;
  /** Unix ms. */
  readonly createdAt: number;
  /** Time of the last deployment, Unix ms. */
  readonly deployedAt: number;
  /** Why the version failed, or why its last roll-out was undone. */
  readonly reason?: string;
}

/** An activation of a version. */
export interface ActivationRecord {
  readonly version: string;
  /** Unix ms. */
  readonly time: number;
  readonly author?: string;
}

/** The active version of an app, and its roll-out. */
export interface Deployment {
  readonly app: string;
  readonly active?: string;
  readonly rollOut?: {
    readonly version: string;
    readonly mode: 'activate' | 'build';
    /** Identifies the roll-out. */
    readonly number: string;
    /** Percent of new calls that the version gets, if calls move in steps. */
    readonly share?: number;
  };
}

/** Reads the hash of a version. Returns undefined for an unknown version. */
export function versionRecord(
  app: string,
  version: string,
  fields: Readonly<Record<string, string>>,
  target: string | undefined,
): VersionRecord | undefined {
  const { state, bundle = '', size, manifest, author, created, deployed, reason } = fields;
  if (state === undefined) return undefined;
  return {
    app,
    version,
    state: state as VersionState,
    rollingOut: target === version,
    bundle,
    size: Number(size),
    ...(manifest && { manifest }),
    ...(author && { author }),
    createdAt: Number(created),
    deployedAt: Number(deployed),
    ...(reason && { reason }),
  };
}

export function deploymentOf(app: string, fields: Readonly<Record<string, string>>): Deployment {
  const { active, target, mode, number, share } = fields;
  return {
    app,
    ...(active && { active }),
    ...(target &&
      number && {
        rollOut: {
          version: target,
          mode: mode === 'build' ? 'build' : 'activate',
          number,
          ...(share !== undefined && { share: Number(share) }),
        },
      }),
  };
}

/** Reads an entry of the list of activations. The author may contain spaces. */
export function activationOf(entry: string): ActivationRecord {
  const [version = '', time = '', ...author] = entry.split(' ');
  return { version, time: Number(time), ...(author.join(' ') && { author: author.join(' ') }) };
}
