// Contract 6: development makes its own token secret and sealing key, once, in its data folder.
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Reads a secret, or makes and keeps it where there is none. Only its owner may read the file. */
function kept(path: string): string {
  try {
    writeFileSync(path, randomBytes(32).toString('base64'), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return readFileSync(path, 'utf8').trim();
}

/** Where `npm run token` finds the secret that the stack's gateway verifies with. */
export const jwtSecretFile = (folder: string): string => join(folder, 'jwt-secret');

export interface Secrets {
  readonly jwtSecret: string;
  readonly secretsKey: string;
}

export const developmentSecrets = (folder: string): Secrets => ({
  jwtSecret: kept(jwtSecretFile(folder)),
  secretsKey: kept(join(folder, 'secrets-key')),
});
