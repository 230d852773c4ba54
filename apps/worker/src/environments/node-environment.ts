// Contract 7, "Dependencies": the folder `node_modules` of a version, installed by npm.
import { writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import type { ReadManifest } from '../deployments/manifest.ts';
import { BuildFailed } from './build-failed.ts';
import type { BuildStep } from './build-step.ts';
import { type NodeDependencies, nodeDependencies } from './node-dependencies.ts';
import { type BuildPlace, type PackageList, runs } from './package-list.ts';
import { onPath } from './python-environment.ts';

/** Returns the npm packages of a version, if it names any and runs JavaScript. @throws BuildFailed */
export async function nodePackages(
  folder: string,
  { manifest, build }: ReadManifest,
): Promise<PackageList | undefined> {
  const list = runs('node', manifest) ? await nodeDependencies(folder) : undefined;
  if (list === undefined) return undefined;
  const { installScripts } = build;
  const engine = manifest.server ? undefined : manifest.interpreter;
  const { files, packages, hasLock, isLocal } = list;
  return {
    place: 'node_modules',
    described: `${packages === 1 ? '1 package' : `${packages} packages`} of package.json${hasLock ? ' with its lockfile' : ''}`,
    identity: { engine: [engine, process.version, process.platform, process.arch], files, installScripts },
    isLocal,
    steps: (place) => nodeSteps(list, installScripts, place),
  };
}

async function nodeSteps(
  { files, hasLock, isLocal }: NodeDependencies,
  installScripts: boolean,
  { from, env }: BuildPlace,
): Promise<BuildStep[]> {
  const npm = await onPath('npm', env.PATH ?? '');
  if (npm === undefined)
    throw new BuildFailed('npm is not on the PATH of the worker: install npm there, or pack node_modules with the app');
  if (!isLocal) for (const [name, text] of Object.entries(files)) await writeFile(join(from, name), text);
  const flags = ['--omit=dev', ...(installScripts ? [] : ['--ignore-scripts'])];
  // npm runs under the Node of the worker, so packages are built for it.
  const own = { ...env, PATH: [dirname(process.execPath), env.PATH].join(delimiter) };
  const args = [hasLock ? 'ci' : 'install', ...flags];
  return [{ name: `npm ${args[0]}`, command: { file: npm, args }, folder: from, env: own }];
}
