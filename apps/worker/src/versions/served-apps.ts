// Contract 7: apps from folders and deployed apps serve calls in the same way.
import type { ServedApps } from '../execution/serving.ts';

/** Returns the apps of both sources. No app is in both. */
export const bothSources = (folders: ServedApps, deployed: ServedApps): ServedApps => ({
  projects: () => [...new Set([...folders.projects(), ...deployed.projects()])],
  appsOf(project) {
    const one = folders.appsOf(project);
    const other = deployed.appsOf(project);
    // Almost every project has one source. Then no list is made, because this is called whenever a slot becomes free.
    if (other.length === 0) return one;
    return one.length === 0 ? other : [...one, ...other];
  },
  find: (project, app) => folders.find(project, app) ?? deployed.find(project, app),
});
