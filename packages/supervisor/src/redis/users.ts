// docs/decisions/0031: the users of a Redis that the supervisor starts, with the same rules as in containers (deploy/redis/users.acl).
import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../folders.ts';

export const REDIS_USERS = ['admin', 'backup', 'monitor', 'gateway', 'worker', 'dispatcher'] as const;
export type RedisUser = (typeof REDIS_USERS)[number];

export type RedisPasswords = Readonly<Record<RedisUser, string>>;

/** Returns a password for each user, the same for the same password of `admin`. */
export function redisPasswords(admin: string): RedisPasswords {
  const passwords = REDIS_USERS.map((user) => [user, createHmac('sha256', admin).update(user).digest('hex')]);
  return { ...(Object.fromEntries(passwords) as RedisPasswords), admin };
}

/** Returns the rules in the form that Redis loads (`--aclfile`), with the hashes of the passwords. */
export function usersFile(passwords: RedisPasswords): string {
  const rules = readFileSync(join(projectRoot(), 'deploy', 'redis', 'users.acl'), 'utf8');
  return rules
    .replace(/^(#.*)?\n/gm, '')
    .replace(/\n +/g, ' ')
    .replace(/\$([A-Z]+)_PASSWORD/g, (_, user: string) => {
      const password = passwords[user.toLowerCase() as RedisUser];
      return `#${createHash('sha256').update(password).digest('hex')}`;
    });
}
