// A bad network: a TCP proxy that cuts each connection after a number of bytes of its answer, at any place.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly port: number;
  /** The number of connections that were cut so far. */
  readonly cuts: number;
  close(): Promise<void>;
}

/** Node's `fetch` drops buffered bytes when a connection is reset. A reader that is cut at once would never advance. */
const READ_MS = 30;

/**
 * Listens on a free port of 127.0.0.1 and passes connections on to another.
 *
 * @param nextCut returns the byte of the answer after which the next connection is cut; infinite means no cut
 */
export async function cuttingProxy(to: number, nextCut: () => number): Promise<CuttingProxy> {
  let cuts = 0;
  const open = new Set<Socket>();
  const server = createServer((caller) => {
    const gateway = connect({ port: to, host: '127.0.0.1' });
    let left = nextCut();
    for (const [side, beyond] of [
      [caller, gateway],
      [gateway, caller],
    ] as const) {
      open.add(side);
      side
        .on('error', () => {})
        .on('close', () => {
          open.delete(side);
          beyond.destroy();
        });
    }
    caller.pipe(gateway);
    gateway.on('data', (bytes: Buffer) => {
      if (bytes.length < left) {
        left -= bytes.length;
        if (caller.write(bytes)) return;
        gateway.pause();
        caller.once('drain', () => gateway.resume());
        return;
      }
      cuts++;
      gateway.pause();
      caller.write(bytes.subarray(0, left));
      setTimeout(() => caller.resetAndDestroy(), READ_MS);
    });
    gateway.on('end', () => caller.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get cuts() {
      return cuts;
    },
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
