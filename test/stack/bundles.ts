// Tests of the whole stack start the services' bundles. An old bundle would pass or fail because of old code.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const hashOf = (path: string): string | undefined =>
  existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : undefined;

/** Returns the first source of a service that differs from its bundle, or undefined if the bundle is up to date. */
function changedSource(service: string): string | undefined {
  // `scripts/bundle.mjs` writes this record.
  const record = join(service, 'dist', 'bundle', 'sources.json');
  if (!existsSync(record)) return record;
  const hashes = JSON.parse(readFileSync(record, 'utf8')) as Record<string, string>;
  const changed = Object.keys(hashes).find((source) => hashOf(resolve(service, source)) !== hashes[source]);
  return changed && resolve(service, changed);
}

/** Runs its modules, because users start it and no stack does. */
const NOT_A_SERVICE = 'cli';

/** @throws Error that names the service, the changed source and the command that builds the bundle again */
export function refuseOldBundles(root: string): void {
  for (const name of readdirSync(join(root, 'apps')).filter((app) => app !== NOT_A_SERVICE)) {
    const service = join(root, 'apps', name);
    if (!existsSync(join(service, 'dist', 'bundle', 'main.js')) && !existsSync(join(service, 'src', 'main.ts')))
      continue;
    const changed = changedSource(service);
    if (changed !== undefined)
      throw new Error(
        `The bundle of the ${name} does not match ${relative(root, changed)}. ` +
          'Run `npm run build`, or run the test by `npm run test:file -- <path>`.',
      );
  }
}
