// How a gateway takes itself out: nobody can connect any more, and nobody who has just connected is turned away.
import type { Server } from 'node:http';
import { Server as TcpServer } from 'node:net';
import { setImmediate as checkPhase, setTimeout as sleep } from 'node:timers/promises';

/** For calls that are on their way on connections that were just made. */
const ON_THEIR_WAY_MS = 500;
/** Against waiting for ever where somebody connects in each turn of the event loop: the phase's deadline is not far. */
const MOST_TURNS = 10_000;

/** A whole turn of the event loop: the first of the two may come before the turn looks at its sockets. */
async function aTurn(): Promise<void> {
  await checkPhase();
  await checkPhase();
}

/**
 * Resolves when every connection that waited has been accepted: one in a turn of the event loop (libuv 1.45 and later). What still waits when a
 * listener closes is reset by the kernel.
 */
async function acceptAll(server: Server): Promise<void> {
  let accepted = 0;
  const count = (): void => void accepted++;
  server.on('connection', count);
  let before = -1;
  for (let turns = 0; accepted !== before && turns < MOST_TURNS; turns++) {
    before = accepted;
    await aTurn();
  }
  server.off('connection', count);
}

/**
 * Stops listening, and resolves when what was on its way has come. A balancer tries a refused connection elsewhere; a POST on one that was taken
 * and then closed is lost, since nobody may send it again. Node's own `close` would close every connection that has no request yet.
 */
export async function stopListening(server: Server): Promise<void> {
  await acceptAll(server);
  TcpServer.prototype.close.call(server);
  const open = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)));
  if (open > 0) await sleep(ON_THEIR_WAY_MS);
  // What came meanwhile is read before connections are looked at: timers are first in a turn.
  await aTurn();
  server.closeIdleConnections();
}
