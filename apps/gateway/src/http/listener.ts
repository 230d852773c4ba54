// Contract 6: a stopping gateway accepts no new connections, and answers the callers that have just connected.
import type { Server } from 'node:http';
import { Server as TcpServer } from 'node:net';
import { setImmediate as checkPhase, setTimeout as sleep } from 'node:timers/promises';

/** Time for requests on new connections to arrive. */
const ON_THEIR_WAY_MS = 500;
/** Prevents an endless wait if a client connects in each turn of the event loop. The deadline of the stop is near. */
const MOST_TURNS = 10_000;

/** Waits for a whole turn of the event loop. The first check phase may come before the turn reads its sockets. */
async function aTurn(): Promise<void> {
  await checkPhase();
  await checkPhase();
}

/**
 * Resolves when every waiting connection is accepted. libuv 1.45 and later accept one connection in a turn of the event loop.
 * The kernel resets the connections that still wait when a listener closes.
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
 * Stops listening. Resolves when the requests on new connections have arrived.
 * A load balancer tries a refused connection elsewhere. A POST on a connection that closes after its accept is lost, because no proxy may repeat it.
 * Node's own `close` would close every connection that has no request yet.
 */
export async function stopListening(server: Server): Promise<void> {
  await acceptAll(server);
  TcpServer.prototype.close.call(server);
  const open = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)));
  if (open > 0) await sleep(ON_THEIR_WAY_MS);
  // Timers run first in a turn, so this turn reads the requests that arrived meanwhile before idle connections are closed.
  await aTurn();
  server.closeIdleConnections();
}
