// Contract 1, "Custom runtimes": reserves the ports of this worker's servers. socket-owner.ts detects servers of other workers on the machine.
import { createServer } from 'node:net';

interface Holder {
  readonly app: string;
  /** How often the app reserved the port: its old version may hold the port while the new version waits for the port. */
  times: number;
}

/** Reservations of ports by app, one object for each worker. */
export class Ports {
  readonly #holders = new Map<number, Holder>();

  /** Returns false if another app of this worker holds the port. */
  reserve(port: number, app: string): boolean {
    const holder = this.#holders.get(port);
    if (holder !== undefined && holder.app !== app) return false;
    this.#holders.set(port, { app, times: (holder?.times ?? 0) + 1 });
    return true;
  }

  /** Returns a port that was free a moment ago and that no app of this worker holds. */
  async reserveFree(app: string): Promise<number> {
    for (;;) {
      const port = await listenable(0);
      if (!this.#holders.has(port) && this.reserve(port, app)) return port;
    }
  }

  /** Undoes one reservation. */
  release(port: number): void {
    const holder = this.#holders.get(port);
    if (holder === undefined) return;
    holder.times--;
    if (holder.times === 0) this.#holders.delete(port);
  }
}

/** Returns whether a process on this machine listens on `port`. @throws Error with a text for the app's author: the port is not allowed here */
export async function isTaken(port: number): Promise<boolean> {
  try {
    await listenable(port);
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return true;
    throw new Error(`port ${port} cannot be used on this machine: ${(error as Error).message}`);
  }
}

/** Returns a port that was free a moment ago. */
export const freePort = (): Promise<number> => listenable(0);

function listenable(port: number): Promise<number> {
  return new Promise((settle, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, () => {
      const address = server.address();
      server.close(() => settle(typeof address === 'object' && address ? address.port : port));
    });
  });
}
