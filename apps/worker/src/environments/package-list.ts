// Contract 7, "Dependencies": the packages of one language that a build installs for a version.
import type { Manifest } from '../deployments/manifest.ts';
import type { BuildStep } from './build-step.ts';

/** The folders and variables of a build. */
export interface BuildPlace {
  /** The folder of the environment. */
  readonly folder: string;
  /** The working directory: the copy of the app if a list names paths of the app, else the folder of the environment. */
  readonly from: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface PackageList {
  /** The entry of the app's folder that holds the packages. */
  readonly place: '.venv' | 'node_modules';
  /** Begins a line of the log. */
  readonly described: string;
  /** Equal identities mean equal packages. */
  readonly identity: unknown;
  /** Whether a line names a path in the app's folder. The environment then depends on the app's code. */
  readonly isLocal: boolean;
  /** Writes the lists into the folder of the build, and returns the steps that install the packages into `place` of `from`. */
  readonly steps: (place: BuildPlace) => Promise<BuildStep[]>;
}

/** Returns whether an app runs programs of a language on this worker. A web server may run programs of several languages. */
export const runs = (language: Manifest['language'], manifest: Manifest): boolean =>
  manifest.server ? manifest.server.url === undefined : manifest.language === language;
