// Contract 6, `/readyz` of a worker: the store works, and the apps were started or at least one of them is served.
import type { ReadyCheck } from '@inference-proxy/platform';
import type { ServedApps } from './execution/serving.ts';

/**
 * @param storeNotReadyReason returns why the store cannot be used, or undefined
 * @param looked returns whether the deployments folder was scanned
 */
export function readyCheck(
  apps: Pick<ServedApps, 'projects' | 'appsOf'>,
  storeNotReadyReason: () => Promise<string | undefined>,
  looked: () => boolean,
): ReadyCheck {
  return async () => {
    const trouble = await storeNotReadyReason();
    if (trouble !== undefined) return trouble;
    if (!looked()) return 'the deployments folder is being scanned';
    const states = apps.projects().flatMap((project) => apps.appsOf(project).map((app) => app.describe().state));
    // A broken app does not become more ready: calls to it are answered with the reason.
    return states.length > 0 && states.every((state) => state === 'starting') ? 'its apps are starting' : undefined;
  };
}
