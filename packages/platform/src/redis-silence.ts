// A connection to Redis that says nothing, though it was asked, is made anew: the other machine may be gone without a word (a power cut, a network
// that forgot the connection), and TCP alone notices after minutes, or never where something between the two goes on acknowledging.
import type { Redis } from 'ioredis';

const LOOK_EVERY_MS = 1000;
/** Looks without a byte: after so many it is asked, after so many given up. Counted, not timed: a process that was frozen has not been listening. */
const ASK_AFTER = 2;
const DROP_AFTER = 5;

/**
 * Watches a client until it is closed, and again when it is opened again. What was under way is sent again on the new connection, as after any break.
 *
 * @param blocks commands of this client may take as long as they like: it is watched only while it connects
 */
export function dropWhenSilent(client: Redis, { blocks = false } = {}): void {
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
    timer ??= setInterval(look, LOOK_EVERY_MS).unref();
  };
  watch();
  // BullMQ ends the connection that it blocks on and opens it again, where it waited too long for an answer.
  client.on('connecting', watch);
  client.on('end', () => {
    clearInterval(timer);
    timer = undefined;
  });
}
