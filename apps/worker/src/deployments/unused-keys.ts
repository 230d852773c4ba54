// Contract 7: the keys of a manifest that no schema names. Keys of the hosted product have no effect; other keys are unknown.
import { asTable, type Sections } from './manifest-text.ts';

/** Keys by which the hosted product builds an image. */
const BUILD_KEYS = ['python_version', 'docker_base_image_url', 'use_uv'] as const;

/** Keys of the hosted product that are accepted without effect, so that its apps run unchanged. `*` is a whole section. */
const NOT_USED = new Set([
  'deployment.name',
  'deployment.python_version',
  'deployment.disable_auth',
  'deployment.include',
  'deployment.exclude',
  'deployment.docker_base_image_url',
  'deployment.use_uv',
  'runtime.cortex.*',
  ...['python', 'custom'].flatMap((kind) => BUILD_KEYS.map((key) => `runtime.${kind}.${key}`)),
  'hardware.cpu',
  'hardware.provider',
  'hardware.region',
  'scaling.compute_tier',
  'scaling.cooldown',
  'scaling.scaling_metric',
  'scaling.scaling_target',
  'scaling.scaling_buffer',
  'scaling.evaluation_interval_seconds',
  'scaling.load_balancing_algorithm',
  'dependencies.conda.*',
  'dependencies.paths.apt',
  'dependencies.paths.conda',
]);

/** Keys of `buildCommandsOf`, by section. */
const COMMAND_KEYS = new Set(
  ['deployment', 'runtime.python', 'runtime.custom'].flatMap((section) => [
    `${section}.shell_commands`,
    `${section}.pre_build_commands`,
  ]),
);

/**
 * Returns the keys that no schema names, separated into keys of the hosted product and unknown keys.
 *
 * @param keysOf returns the keys of a section's schema, or `any` if the author chooses the keys
 */
export function keysWithoutSchema(
  found: Sections,
  keysOf: (section: string) => readonly string[] | 'any',
): { unused: string[]; unknown: string[] } {
  const unused: string[] = [];
  const unknown: string[] = [];
  for (const [name, value] of found) {
    const known = keysOf(name);
    if (known === 'any') continue;
    const table = asTable(value);
    if (!table) unknown.push(name);
    else if (NOT_USED.has(`${name}.*`)) unused.push(name);
    else
      for (const key of Object.keys(table).filter((key) => !known.includes(key) && !COMMAND_KEYS.has(`${name}.${key}`)))
        (NOT_USED.has(`${name}.${key}`) ? unused : unknown).push(`${name}.${key}`);
  }
  return { unused, unknown };
}
