// RFC 9112 §9.6: a caller that closed its side of the connection has left, or it only sends nothing more. A write shows which is true.
import type { Socket } from 'node:net';

/** The first write to a caller that has left breaks the connection. The second write, a round trip later, finds it broken. */
const PAUSES_MS = [10, 50, 250, 1000];
/** A caller that has stayed may leave later. */
const LATER_MS = 15_000;

/** Calls `probe` at growing intervals until the connection is closed. `probe` writes something harmless. */
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
