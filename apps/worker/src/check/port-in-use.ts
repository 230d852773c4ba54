// Contract 7: `npm run check` accepts a fixed port that the running app itself holds.
import { realpath } from 'node:fs/promises';
import type { CustomServer } from '../deployments/custom-server.ts';
import { replacePort } from '../runtimes/http-server/literal-port.ts';
import { isTaken } from '../runtimes/http-server/ports.ts';
import { isHeldFrom, listeningSockets } from '../runtimes/http-server/socket-owner.ts';

/**
 * Returns a note if the server cannot be started beside the process that holds its port, and this process is, or may be, the app itself.
 * Returns undefined if the port is free, if the worker would replace the port, or if a process of another app holds the port.
 */
export async function portInUse(server: CustomServer, folder: string): Promise<string | undefined> {
  const { port, entrypoint = [] } = server;
  if (port === undefined || replacePort(entrypoint, port, 0) || !(await isTaken(port).catch(() => false)))
    return undefined;
  const inodes = [...(listeningSockets('127.0.0.1', port) ?? []), ...(listeningSockets('::1', port) ?? [])];
  if (inodes.length === 0) return `port ${port} is in use, perhaps by this app: the check did not start the app`;
  if (!isHeldFrom(await realpath(folder), inodes)) return undefined;
  return `port ${port} is held by this running app: the check did not start it again`;
}
