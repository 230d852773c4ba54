// Contract 6: development makes its own token secret and sealing key, once, in its data folder.
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RedisPasswords, redisPasswords } from './redis-users.ts';

/** Reads a secret, or makes and keeps it where there is none. Only its owner may read the file. */
function kept(path: string, encoding: BufferEncoding = 'base64'): string {
  try {
    writeFileSync(path, randomBytes(32).toString(encoding), { flag: 'wx', mode: 0o600 });
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

/** The passwords of the users of the stack's own Redis. */
export const developmentRedisPasswords = (folder: string): RedisPasswords =>
  redisPasswords(kept(join(folder, 'redis-admin-password'), 'hex'));

export const developmentSecrets = (folder: string): Secrets => ({
  jwtSecret: kept(jwtSecretFile(folder)),
  secretsKey: kept(join(folder, 'secrets-key')),
});
