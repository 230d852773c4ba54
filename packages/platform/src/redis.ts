// One way to connect to Redis: named, never giving up, never the end of the process, and without a queue that grows while Redis is away.
import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from './logging.ts';
import { logRefusals } from './redis-refusals.ts';
import { dropWhenSilent } from './redis-silence.ts';

const LONGEST_DELAY_MS = 2000;
const JITTER_MS = 100;

export interface ConnectOptions {
  /** How long a command may go unanswered before it rejects, milliseconds; absent: for ever (blocking commands, subscribers). */
  readonly commandMs?: number;
  /**
   * What becomes of commands issued while there is no connection.
   *
   * - `refuse` (default): they reject at once. ioredis would else keep them, parameters and all, without bound, and send them late: after the caller was told 503.
   * - `wait`: they are sent when Redis is back. Only for a client with a handful of commands under way that repeats them anyway, such as a BullMQ worker's.
   */
  readonly whileAway?: 'refuse' | 'wait';
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
 * A client that is connecting. Wait for `redisReady` before the first command, unless it is one that waits.
 *
 * A command whose reply was lost with the connection is sent again (ioredis), so scripts must bear being run twice.
 * @param url `redis://`, `rediss://` or `redis+unix://`, as `redisAddress` reads them
 * @param name shown in `CLIENT LIST` and in the logs
 */
export function connectRedis(url: string, name: string, logger: Logger, options: ConnectOptions = {}): Redis {
  const client = new Redis({
    ...redisAddress(url),
    connectionName: name,
    // CLIENT SETINFO is in no service's ACL: Redis 7.0 does not know the command.
    disableClientInfo: true,
    // Connected is not enough: while Redis loads its file it refuses commands.
    enableReadyCheck: true,
    enableOfflineQueue: options.whileAway === 'wait',
    // What was under way when the connection broke is sent again when it is back; `commandMs` is what ends the wait.
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => Math.min(50 * 2 ** (attempt - 1), LONGEST_DELAY_MS) + Math.random() * JITTER_MS,
    connectTimeout: 5000,
    keepAlive: 10_000,
    ...(options.commandMs !== undefined && { commandTimeout: options.commandMs }),
  });
  dropWhenSilent(client);
  logRefusals(client, name, logger);
  // BullMQ makes the connection that it blocks on in this way, and looks after it itself, once it is made.
  const { duplicate } = client;
  client.duplicate = (override) => {
    const second = duplicate.call(client, override);
    dropWhenSilent(second, { blocks: true });
    logRefusals(second, name, logger);
    return second;
  };
  // One line per outage, not one per attempt.
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
 * Resolves when the client can take commands, however long that takes.
 *
 * @throws Error when it was closed meanwhile
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

/** Closes a client at the end of everything: politely where Redis answers within `limitMs`, else at once. */
export async function closeRedis(client: Redis, limitMs = 500): Promise<void> {
  if (client.status !== 'ready') {
    client.disconnect();
    return;
  }
  const timer = setTimeout(() => client.disconnect(), limitMs);
  await client.quit().catch(() => client.disconnect());
  clearTimeout(timer);
}
