// TCP ports: is one free, and which one is.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Listens for a moment. Rejects with the system's error (EADDRINUSE, EACCES, EADDRNOTAVAIL) where that cannot be. */
async function bind(host: string, port: number): Promise<number> {
  const server = createServer().listen({ host, port, exclusive: true });
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  return address.port;
}

/** Below the ports that systems give to connections and to whoever wants any: nobody gets one of these who did not ask for it. */
const [LOWEST, HIGHEST] = [10_000, 32_000];
const TRIES = 50;

/** A port that nobody listens on just now, and that a system gives to nobody meanwhile. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = await bind(host, randomInt(LOWEST, HIGHEST)).catch(() => undefined);
    if (port !== undefined) return port;
  }
  return bind(host, 0);
}

/** Why a server could not listen there, in words; undefined where it could. */
export async function whyNotListen(host: string, port: number): Promise<string | undefined> {
  try {
    await bind(host, port);
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return `port ${port} on ${host} is taken by another program`;
    if (code === 'EACCES') return `port ${port} is only for root`;
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `${host} is not an address of this machine`;
    return message;
  }
}
