// Replaces a connection to Redis that stays silent after a question. The other machine may be gone without notice (a power cut, a network that
// forgot the connection). TCP alone notices this after minutes, or never if a device on the way keeps acknowledging.
import type { Redis } from 'ioredis';

const LOOK_EVERY_MS = 1000;

export interface SilenceOptions {
  /** True if commands of this client may take any time. The client is then watched only while it connects. */
  readonly blocks?: boolean;
  /** Time between two checks, milliseconds. Tests shorten it. */
  readonly lookEveryMs?: number | undefined;
}

/**
 * After this many checks without a byte, Redis is asked; after `DROP_AFTER`, the connection is dropped. Checks are counted instead of timed,
 * because a frozen process could not receive.
 */
const ASK_AFTER = 2;
const DROP_AFTER = 5;

/** Watches a client until it is closed, and again after it is reopened. ioredis repeats unanswered commands on the new connection. */
export function dropWhenSilent(
  client: Redis,
  { blocks = false, lookEveryMs = LOOK_EVERY_MS }: SilenceOptions = {},
): void {
  let watched: Redis['stream'] | undefined;
  let heard = 0;
  let silent = 0;
  const look = (): void => {
    const { stream, status } = client;
    const connected = status === 'connect' || (status === 'ready' && !blocks);
    if (!connected || stream !== watched || stream.bytesRead !== heard) {
      watched = stream;
      heard = stream?.bytesRead ?? 0;
      silent = 0;
      return;
    }
    silent++;
    if (silent === ASK_AFTER && status === 'ready') client.ping().catch(() => {});
    if (silent === DROP_AFTER) stream.destroy();
  };
  let timer: NodeJS.Timeout | undefined;
  const watch = (): void => {
    timer ??= setInterval(look, lookEveryMs).unref();
  };
  watch();
  // After a long wait for an answer, BullMQ closes its blocking connection and opens it again.
  client.on('connecting', watch);
  client.on('end', () => {
    clearInterval(timer);
    timer = undefined;
  });
}
