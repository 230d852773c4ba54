// runtimes: whether an app's own web server answers: a path that has to answer 2xx, or a connection where none is named.
import http from 'node:http';
import https from 'node:https';
import { connect } from 'node:net';
import type { ServerAddress } from './address.ts';

/** `silent`: it took the connection and has not answered in time, which a server that is busy with a run may not either. */
export type ProbeAnswer = { readonly state: 'ok' } | { readonly state: 'silent' | 'failed'; readonly why: string };

const LOOPBACK = ['127.0.0.1', '::1'] as const;

/** Never rejects. @param path '' for a connection alone */
export function probe(address: ServerAddress, path: string, timeoutMs: number): Promise<ProbeAnswer> {
  return path === '' ? accepts(address, timeoutMs) : answers(address, path, timeoutMs);
}

/** The loopback address at which something takes connections on a port; undefined where nothing does. */
export async function whereOnLoopback(port: number, timeoutMs: number): Promise<string | undefined> {
  for (const host of LOOPBACK) if ((await accepts({ host, port }, timeoutMs)).state === 'ok') return host;
  return undefined;
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
  const { secure, host, port, authority, prefix } = address;
  return new Promise((resolve) => {
    // A connection of its own: a probe tells of the server, not of a connection that was kept.
    const options = { host, port, path: prefix + path, agent: false as const, headers: { host: authority } };
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
