// Contract 7, "Apps": the description of an app, which this worker announces.
import type { AppDescription, FailedVersion } from '@inference-proxy/contracts';
import type { Started } from './offered-version.ts';

const DEFAULT_QUEUE = { queueLimit: 1_000, queueTimeoutMs: 600_000 };

interface Circumstances {
  /** The code comes from deployed versions. */
  readonly deployed: boolean;
  /** Why the app has no version yet. */
  readonly waiting: string | undefined;
  /** The version that was offered last, if it failed to start while another version serves. */
  readonly failed: FailedVersion | undefined;
}

/** @param current the serving version */
export function describeApp(
  app: string,
  current: Started | undefined,
  { deployed, waiting, failed }: Circumstances,
): AppDescription {
  const { version = '', manifest, runtime, error } = current ?? {};
  const { queueLimit, queueTimeoutMs } = manifest ?? DEFAULT_QUEUE;
  const why = error ?? (runtime?.state === 'broken' ? runtime.error : undefined);
  return {
    app,
    kind: manifest?.server ? 'server' : 'functions',
    state: why ? 'broken' : runtime?.state === 'ready' ? 'ready' : 'starting',
    version,
    ...(deployed && { deployed: true }),
    functions: (runtime?.functions ?? []).map((spec) => {
      const examples = manifest?.examples[spec.name];
      return examples === undefined ? spec : { ...spec, examples };
    }),
    ...(why && { error: why }),
    ...(why && runtime?.startLog?.length && { startLog: runtime.startLog }),
    ...(!current && waiting !== undefined && { waiting }),
    ...(failed && { failed }),
    queueLimit,
    queueTimeoutMs,
    // A server's events keep their names only as ready-made events.
    preformatted: manifest?.server !== undefined || (manifest?.preformatted ?? true),
    ...(manifest?.maxBodyBytes !== undefined && { maxBodyBytes: manifest.maxBodyBytes }),
    ...(manifest?.server?.forwardAuth && { forwardAuth: true }),
  };
}
