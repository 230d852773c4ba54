// Reads the commands that Redis has denied since its start: a missing right of a service shows here, even if the service ignores the error.
import { redisAddress } from '@inference-proxy/platform';
import { Redis } from 'ioredis';

/**
 * Returns one line for each denied kind of command, with the user, the command or key, and the client. Denials of a wrong password are not
 * among them.
 *
 * @param url of a user that may read the log; a Redis that does not answer gives an empty list
 */
export async function deniedCommands(url: string): Promise<string[]> {
  const redis = new Redis({
    ...redisAddress(url),
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    commandTimeout: 5000,
  });
  redis.on('error', () => {});
  try {
    const entries = (await redis.call('ACL', 'LOG')) as (string | number)[][];
    return entries
      .map(fieldsOf)
      .filter(({ reason }) => reason !== 'auth')
      .map(({ username, reason, object, context }) => `${username}: ${reason} ${object} (${context})`);
  } catch {
    return [];
  } finally {
    redis.disconnect();
  }
}

/** Converts an entry, which is a list of alternating names and values. */
const fieldsOf = (entry: readonly (string | number)[]): Record<string, string> =>
  Object.fromEntries(Array.from({ length: entry.length / 2 }, (_, at) => [entry[2 * at], String(entry[2 * at + 1])]));
