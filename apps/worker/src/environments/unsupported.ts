// Contract 7, "Dependencies": keys of a manifest that the worker reports and does not apply.
import type { BuildKeys } from '../deployments/build-keys.ts';

/** Returns a line for the version's log and for `check`. */
export const unsupported = ({ apt }: BuildKeys): string[] =>
  apt.length === 0
    ? []
    : [`[dependencies.apt] is not supported (${apt.join(', ')}): system packages belong in the worker's image`];
