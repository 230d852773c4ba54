// RFC 9112 §9.6: a caller that has closed its side of the connection has left, or only has nothing more to say. Writing tells which.
import type { Socket } from 'node:net';

/** The first write makes the system of a caller that has left break the connection; the second finds it broken, a round trip later. */
const PAUSES_MS = [10, 50, 250, 1000];
/** One that has stayed may leave later. */
const LATER_MS = 15_000;

/** Calls `probe`, which has something harmless written, now and again until the connection is closed. */
export function probeUntilClosed(socket: Socket, probe: () => void): void {
  let times = 0;
  let timer: NodeJS.Timeout | undefined;
  const again = (): void => {
    if (socket.destroyed) return;
    probe();
    timer = setTimeout(again, PAUSES_MS[times] ?? LATER_MS);
    times += 1;
  };
  socket.once('close', () => clearTimeout(timer));
  again();
}
