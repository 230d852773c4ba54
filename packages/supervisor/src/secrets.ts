// Contract 6: a development stack makes a token secret and a sealing key, once, and keeps them in its data folder.
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RedisPasswords, redisPasswords } from './redis/users.ts';

/** Reads a secret. Creates the secret if the file is missing. Only the file's owner may read it. */
function kept(path: string, encoding: BufferEncoding = 'base64'): string {
  try {
    writeFileSync(path, randomBytes(32).toString(encoding), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return readFileSync(path, 'utf8').trim();
}

/** The file in which `npm run token` finds the gateway's token secret. */
export const jwtSecretFile = (folder: string): string => join(folder, 'jwt-secret');

export interface Secrets {
  readonly jwtSecret: string;
  readonly secretsKey: string;
}

/** Returns the passwords of the users of the stack's Redis. */
export const developmentRedisPasswords = (folder: string): RedisPasswords =>
  redisPasswords(kept(join(folder, 'redis-admin-password'), 'hex'));

export const developmentSecrets = (folder: string): Secrets => ({
  jwtSecret: kept(jwtSecretFile(folder)),
  secretsKey: kept(join(folder, 'secrets-key')),
});
