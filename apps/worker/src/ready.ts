// Contract 6, `/readyz` of a worker: the store is reachable, and its apps are loaded or at least one of them is served.
import type { ReadyCheck } from '@inference-proxy/platform';
import type { ServedApps } from './execution/serving.ts';

/**
 * @param storeTrouble why the store cannot be used; undefined if it can
 * @param looked whether the deployments folder has been looked at
 */
export function readyCheck(
  apps: Pick<ServedApps, 'projects' | 'appsOf'>,
  storeTrouble: () => Promise<string | undefined>,
  looked: () => boolean,
): ReadyCheck {
  return async () => {
    const trouble = await storeTrouble();
    if (trouble !== undefined) return trouble;
    if (!looked()) return 'its apps are being looked for';
    const states = apps.projects().flatMap((project) => apps.appsOf(project).map((app) => app.describe().state));
    // One that cannot be started is loaded as far as it ever will be: calls to it are answered with the reason.
    return states.length > 0 && states.every((state) => state === 'starting') ? 'its apps are starting' : undefined;
  };
}
