// TCP ports: checks whether a port is free, and finds a free port.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Listens for a moment. Rejects with the system's error (EADDRINUSE, EACCES, EADDRNOTAVAIL) if it cannot listen. */
async function bind(host: string, port: number): Promise<number> {
  const server = createServer().listen({ host, port, exclusive: true });
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('the TCP server has no port');
  return address.port;
}

/** Below the ports that systems assign to connections and to listeners on port 0, so no other process gets these ports by chance. */
const [LOWEST, HIGHEST] = [10_000, 32_000];
const TRIES = 50;

/** Returns a port on which no process listens, and which the system does not assign meanwhile. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = await bind(host, randomInt(LOWEST, HIGHEST)).catch(() => undefined);
    if (port !== undefined) return port;
  }
  return bind(host, 0);
}

/** Returns the reason why a server could not listen on the address, or undefined if it could. */
export async function whyNotListen(host: string, port: number): Promise<string | undefined> {
  try {
    await bind(host, port);
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return `port ${port} on ${host} is taken by another program`;
    if (code === 'EACCES') return `port ${port} requires root`;
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `${host} is not an address of this machine`;
    return message;
  }
}
