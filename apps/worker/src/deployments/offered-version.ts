// Contract 7: a version of an app's code before its start, and a run on a version.
import type { ErrorFields } from '@inference-proxy/contracts';
import type { RunningRun, Runtime } from '../runtimes/runtime.ts';
import type { AppFolder } from './app-folders.ts';
import type { Manifest } from './manifest.ts';

/** A version of an app's code, or the reason why it cannot run. */
export interface OfferedVersion {
  readonly version: string;
  readonly manifest: Manifest | undefined;
  /** The error of the manifest. Set if there is no manifest. */
  readonly error?: ErrorFields;
  /** The version's folder, if it is not the app's. */
  readonly folder?: string;
}

/** Creates the runtime of a version without starting it. */
export type MakeRuntime = (place: AppFolder, version: string, manifest: Manifest) => Runtime;

/** A run and the version that executes it. */
export interface StartedRun {
  readonly running: RunningRun;
  readonly version: string;
  readonly limits: Pick<Manifest, 'maxOutputBytes' | 'retryOnCrash'>;
}

/** A version with the runtime that starts or serves it. */
export interface Started extends OfferedVersion {
  readonly runtime: Runtime | undefined;
}
