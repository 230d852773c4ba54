// How a gateway takes itself out: nobody can connect any more, and nobody who has just connected is turned away.
import type { Server } from 'node:http';
import { Server as TcpServer } from 'node:net';
import { setImmediate as afterAccepting, setTimeout as sleep } from 'node:timers/promises';

/** For calls that are on their way on connections that were just made. */
const ON_THEIR_WAY_MS = 500;

/**
 * Stops listening, and resolves when what was on its way has come. A balancer tries a refused connection elsewhere; a POST on one that was taken
 * and then closed is lost, since nobody may send it again. Node's own `close` would close every connection that has no request yet.
 */
export async function stopListening(server: Server): Promise<void> {
  // After the event loop has accepted what was waiting: what still waits when a listener closes is reset by the kernel.
  await afterAccepting();
  TcpServer.prototype.close.call(server);
  const open = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)));
  if (open > 0) await sleep(ON_THEIR_WAY_MS);
  server.closeIdleConnections();
}
