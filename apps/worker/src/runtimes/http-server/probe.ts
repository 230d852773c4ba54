// Contract 1, "Custom runtimes": whether an app's web server answers: 2xx on a path, or a connection if there is no path.
import http from 'node:http';
import https from 'node:https';
import { connect } from 'node:net';
import { localAddress, type ServerAddress } from './address.ts';
import { ListenerGuard } from './listener-guard.ts';
import type { Loopback } from './socket-owner.ts';

/** `silent`: the server accepted the connection but has not answered in time. A server that is busy with a run may be silent too. */
export type ProbeAnswer = { readonly state: 'ok' } | { readonly state: 'silent' | 'failed'; readonly why: string };

const LOOPBACK: readonly Loopback[] = ['127.0.0.1', '::1'];

/** Never rejects. @param path empty: only opens a connection */
export async function probe(address: ServerAddress, path: string, timeoutMs: number): Promise<ProbeAnswer> {
  const why = strangerAt(address);
  if (why !== undefined) return { state: 'failed', why };
  return path === '' ? accepts(address, timeoutMs) : answers(address, path, timeoutMs);
}

/**
 * Returns the address of the server that `keeper` started on `port`, or the reason as text: nothing listens, or a process of another
 * app listens. On a system without /proc the owner is unknown, and every server that takes connections counts.
 */
export async function findServer(keeper: number, port: number, timeoutMs: number): Promise<ServerAddress | string> {
  let why = 'it takes no connections';
  for (const host of LOOPBACK) {
    // Reading the table of sockets costs more than a connection, and a server may take minutes to start.
    if ((await accepts({ host, port }, timeoutMs)).state !== 'ok') continue;
    const address = localAddress(host, port, new ListenerGuard(host, port, keeper));
    const stranger = strangerAt(address);
    if (stranger === undefined) return address;
    why = stranger;
  }
  return why;
}

/** Returns the reason, as text, why a connection would not reach the app. */
function strangerAt({ guard }: ServerAddress): string | undefined {
  try {
    guard?.sockets();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function accepts({ host, port }: Pick<ServerAddress, 'host' | 'port'>, timeoutMs: number): Promise<ProbeAnswer> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const done = (answer: ProbeAnswer): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => done({ state: 'silent', why: 'it takes no connection' }), timeoutMs);
    socket.once('connect', () => done({ state: 'ok' }));
    socket.once('error', (error) => done({ state: 'failed', why: error.message }));
  });
}

function answers(address: ServerAddress, path: string, timeoutMs: number): Promise<ProbeAnswer> {
  const { secure, host, port, authority, prefix, unkept } = address;
  return new Promise((resolve) => {
    // Opens a new connection, because a probe must test the server and not a kept connection.
    const options = { host, port, path: prefix + path, agent: unkept, headers: { host: authority } };
    const request = (secure ? https : http).request(options);
    const done = (answer: ProbeAnswer): void => {
      clearTimeout(timer);
      request.destroy();
      resolve(answer);
    };
    const timer = setTimeout(
      () => done({ state: 'silent', why: `${path} has not answered within ${timeoutMs / 1_000} s` }),
      timeoutMs,
    );
    request.on('response', ({ statusCode = 0 }) => {
      if (statusCode >= 200 && statusCode < 300) done({ state: 'ok' });
      else done({ state: 'failed', why: `${path} answered ${statusCode}` });
    });
    request.on('error', (error) => done({ state: 'failed', why: error.message }));
    request.end();
  });
}
