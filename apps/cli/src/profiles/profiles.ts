// Contract 7, "Command line": profiles are the addresses and tokens that `login` has stored. Only the owner may read the file.
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../service/failures.ts';

export interface Profile {
  /** The gateway, without a slash at the end. */
  readonly url: string;
  readonly token: string;
  /** The project of commands without `--project`. */
  readonly project?: string;
}

export type Profiles = Readonly<Record<string, Profile>>;

const fileIn = (configDir: string): string => join(configDir, 'profiles.json');

/** Returns the stored profiles by name, and the path of their file. @throws Failure if the file is damaged */
export function readProfiles(configDir: string): { readonly profiles: Profiles; readonly path: string } {
  const path = fileIn(configDir);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { profiles: {}, path };
    throw new Failure('failed', `The profiles cannot be read: ${(error as Error).message}`);
  }
  try {
    const { profiles } = JSON.parse(text) as { profiles: Profiles };
    if (typeof profiles === 'object' && profiles !== null) return { profiles, path };
  } catch {
    // The message below names the file.
  }
  throw new Failure('failed', `${path} is damaged: remove the file, and run inference-proxy login again`);
}

/** Stores a profile. The file appears whole, with mode 0600. @returns the path of the file */
export function storeProfile(configDir: string, name: string, profile: Profile): string {
  const { profiles, path } = readProfiles(configDir);
  mkdirSync(configDir, { recursive: true, mode: 0o700 });
  const made = `${path}.${process.pid}.new`;
  writeFileSync(made, `${JSON.stringify({ profiles: { ...profiles, [name]: profile } }, undefined, 2)}\n`, {
    mode: 0o600,
  });
  // The mode of `writeFileSync` does not apply to a file that a killed process has left.
  chmodSync(made, 0o600);
  renameSync(made, path);
  return path;
}
