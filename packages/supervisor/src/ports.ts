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

/** The errors of an address that this machine does not have, and of a name without an address. */
const NO_ADDRESS = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL'];

/** Returns why a server could not listen on the address, and the setting to change. Returns undefined if it could listen. */
export async function whyNotListen(host: string, port: number): Promise<string | undefined> {
  try {
    await bind(host, port);
    return undefined;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (NO_ADDRESS.includes(code))
      return `${host} is not an address of this machine; choose another with HOST=127.0.0.1 npm start`;
    if (code === 'EACCES') return `port ${port} requires root; choose another with PORT=8080 npm start`;
    const why = code === 'EADDRINUSE' ? `port ${port} on ${host} is taken by another program` : message;
    return `${why}; choose another with PORT=${port + 1} npm start`;
  }
}
