// Connects to Redis: named connections that always reconnect, never end the process, and queue no commands while Redis is away.
import { backOffMs } from '@inference-proxy/retry';
import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from './logging.ts';
import { logRefusals } from './redis-refusals.ts';
import { dropWhenSilent } from './redis-silence.ts';

/** The pauses between two attempts to connect. */
const CONNECT_AGAIN = { firstMs: 100, lastMs: 2_000 };

export interface ConnectOptions {
  /** The longest wait for a reply before a command rejects, milliseconds. Absent: no limit (blocking commands, subscribers). */
  readonly commandMs?: number;
  /**
   * The fate of commands that are sent while there is no connection.
   *
   * - `refuse` (default): commands reject at once. ioredis would otherwise keep them with their parameters, without bound, and send them after
   *   the caller has received 503.
   * - `wait`: commands are sent when Redis is back. Only for a client that has few open commands and repeats them anyway, such as a BullMQ worker.
   */
  readonly whileAway?: 'refuse' | 'wait';
  /** Time between two checks for silence (redis-silence.ts), milliseconds. Tests shorten it. */
  readonly lookEveryMs?: number;
}

/** Returns ioredis' options for a REDIS_URL. `redis+unix:///path` and `redis+unix://user:password@localhost/path` are Unix sockets. */
export function redisAddress(url: string): RedisOptions {
  const parsed = new URL(url);
  const user = {
    ...(parsed.username && { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password && { password: decodeURIComponent(parsed.password) }),
  };
  if (parsed.protocol === 'redis+unix:') return { ...user, path: decodeURIComponent(parsed.pathname) };
  const database = parsed.pathname.slice(1);
  return {
    ...user,
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(parsed.port || 6379),
    ...(database && { db: Number(database) }),
    ...(parsed.protocol === 'rediss:' && { tls: { servername: parsed.hostname } }),
  };
}

/**
 * Returns a client that is connecting. Wait for `redisReady` before the first command, unless the client has `whileAway: 'wait'`.
 *
 * ioredis repeats a command whose reply was lost with the connection. Scripts must therefore accept a second execution.
 * @param url `redis://`, `rediss://` or `redis+unix://`, in the form that `redisAddress` reads
 * @param name shown in `CLIENT LIST` and in the logs
 */
export function connectRedis(url: string, name: string, logger: Logger, options: ConnectOptions = {}): Redis {
  const client = new Redis({
    ...redisAddress(url),
    connectionName: name,
    // CLIENT SETINFO is in no service's ACL: Redis 7.0 does not know the command.
    disableClientInfo: true,
    // A connected Redis may still be loading its file, and refuses commands until then.
    enableReadyCheck: true,
    enableOfflineQueue: options.whileAway === 'wait',
    // Unanswered commands of a broken connection are repeated on the next connection; only `commandMs` ends their wait.
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => backOffMs(attempt, CONNECT_AGAIN),
    connectTimeout: 5000,
    keepAlive: 10_000,
    ...(options.commandMs !== undefined && { commandTimeout: options.commandMs }),
  });
  const { lookEveryMs } = options;
  dropWhenSilent(client, { lookEveryMs });
  logRefusals(client, name, logger);
  // BullMQ duplicates the client for its blocking commands and watches that connection itself after the connect.
  const { duplicate } = client;
  client.duplicate = (override) => {
    const second = duplicate.call(client, override);
    dropWhenSilent(second, { blocks: true, lookEveryMs });
    logRefusals(second, name, logger);
    return second;
  };
  // Logs a line for each outage instead of a line for each attempt.
  let away = false;
  const lost = (reason: string): void => {
    if (away || client.status === 'end') return;
    away = true;
    logger.warn({ connection: name, reason }, 'Redis is away; trying again until it is back');
  };
  client.on('error', (error: Error) => lost(error.message));
  client.on('reconnecting', () => lost('connection closed'));
  client.on('ready', () => {
    if (away) logger.info({ connection: name }, 'Redis is back');
    away = false;
  });
  return client;
}

/**
 * Resolves when the client accepts commands; there is no time limit.
 *
 * @throws Error if the client was closed meanwhile
 */
export function redisReady(client: Redis): Promise<void> {
  if (client.status === 'ready') return Promise.resolve();
  const closed = (): Error => new Error('the connection to Redis was closed before it was ready');
  if (client.status === 'end') return Promise.reject(closed());
  return new Promise((accept, refuse) => {
    const settle = (): void => {
      client.off('ready', onReady).off('end', onEnd);
    };
    const onReady = (): void => {
      settle();
      accept();
    };
    const onEnd = (): void => {
      settle();
      refuse(closed());
    };
    client.on('ready', onReady).on('end', onEnd);
  });
}

/** Closes a client: with QUIT if Redis answers within `limitMs`, else by closing the socket. */
export async function closeRedis(client: Redis, limitMs = 500): Promise<void> {
  if (client.status !== 'ready') {
    client.disconnect();
    return;
  }
  const timer = setTimeout(() => client.disconnect(), limitMs);
  await client.quit().catch(() => client.disconnect());
  clearTimeout(timer);
}
