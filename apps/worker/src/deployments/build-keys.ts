// Contract 7, "Dependencies": the keys of a manifest for the build of a deployed version. A folder is served as it is, without a build.
import { z } from 'zod';
import { asTable, ManifestError, type Sections } from './manifest-text.ts';

export interface BuildKeys {
  /** The table `[dependencies.pip]` as lines of a requirements file. Undefined: there is no table. */
  readonly pip: readonly string[] | undefined;
  /** `[dependencies.paths] pip`: a requirements file in the app's folder. */
  readonly pipFile: string | undefined;
  /** The system packages of `[dependencies.apt]`, which the worker does not install. */
  readonly apt: readonly string[];
  /** Whether npm runs the install scripts of packages. */
  readonly installScripts: boolean;
  /** The commands before the installation of packages (`pre_build_commands`). */
  readonly before: readonly string[];
  /** The commands after the installation (`shell_commands`). */
  readonly after: readonly string[];
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._ -]*\])?$/;
const SPECIFIER = /^(===|==|~=|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]+$/;
const EXACT = /^[0-9][A-Za-z0-9.*+!_-]*$/;
const ADDRESS = /^(git\+)?(https?|ssh):\/\/[^\s]+$/;
/** Versions of the hosted product that accept any version. */
const ANY = ['', '*', 'latest'];

/**
 * Returns a row of `[dependencies.pip]` as a line of a requirements file.
 *
 * @param version `latest`, a version, specifiers such as `>=2,<3`, or the address of an archive or a Git repository
 * @throws ManifestError
 */
export function requirementOf(name: string, version: string): string {
  const wanted = version.trim();
  if (!NAME.test(name)) throw new ManifestError(`[dependencies.pip] ${name}: expected the name of a package`);
  if (ANY.includes(wanted)) return name;
  if (EXACT.test(wanted)) return `${name}==${wanted}`;
  if (ADDRESS.test(wanted)) return `${name} @ ${wanted}`;
  const specifiers = wanted.split(',').map((one) => one.trim());
  if (specifiers.every((one) => SPECIFIER.test(one))) return `${name}${specifiers.join(',')}`;
  throw new ManifestError(`[dependencies.pip] ${name}: expected a version such as ">=2.0", "2.1.3" or "latest"`);
}

const commands = z.array(z.string(), 'expected a list of commands').default([]);
const SECTIONS = ['deployment', 'runtime.python', 'runtime.custom'];

/** Returns the commands of all sections in which the hosted product reads them. @throws ManifestError */
export function buildCommandsOf(found: Sections): Pick<BuildKeys, 'before' | 'after'> {
  const all = (key: string): string[] =>
    SECTIONS.flatMap((section) => {
      const read = commands.safeParse(asTable(found.get(section))?.[key]);
      if (!read.success) throw new ManifestError(`[${section}] ${key}: expected a list of commands`);
      return read.data.filter((line) => line.trim() !== '');
    });
  return { before: all('pre_build_commands'), after: all('shell_commands') };
}

/** Returns the keys that are set. They have no effect on a folder. */
export function keysOf({ pip, pipFile, apt, installScripts, before, after }: BuildKeys): string[] {
  return [
    ...(pip === undefined ? [] : ['dependencies.pip']),
    ...(pipFile === undefined ? [] : ['dependencies.paths.pip']),
    ...(apt.length === 0 ? [] : ['dependencies.apt']),
    ...(installScripts ? ['runtime.node.install_scripts'] : []),
    ...(before.length === 0 ? [] : ['pre_build_commands']),
    ...(after.length === 0 ? [] : ['shell_commands']),
  ];
}
