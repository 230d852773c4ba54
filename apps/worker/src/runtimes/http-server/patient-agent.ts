// Contract 1, "Custom runtimes": connections that read a server's answer even if the server refuses the body before it has read the body.
import http, { type ClientRequestArgs } from 'node:http';
import { Socket, type SocketConstructorOpts, type TcpSocketConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ListenerGuard } from './listener-guard.ts';

type WriteDone = (error?: Error | null) => void;

/**
 * Reads the answer after the server has stopped reading the request. Otherwise a failed write would discard the received bytes (RFC 9112 §9.6).
 * The reading side reports the end of the connection just as reliably.
 */
class PatientSocket extends Socket {
  override _write(chunk: unknown, encoding: BufferEncoding, done: WriteDone): void {
    super._write(chunk, encoding, unlessRefused(done));
  }

  override _writev(chunks: { chunk: unknown; encoding: BufferEncoding }[], done: WriteDone): void {
    super._writev?.(chunks, unlessRefused(done));
  }
}

const unlessRefused =
  (done: WriteDone): WriteDone =>
  (error) => {
    const code = error && 'code' in error && error.code;
    if (code !== 'EPIPE' && code !== 'ECONNRESET') done(error);
  };

/** Time limit for a server whose machine accepts no connections. The system's own limit is minutes. */
export const CONNECT_MS = 10_000;

type Connected = (error: Error | null, stream: Duplex) => void;

/** Opens plain connections. */
export class PatientAgent extends http.Agent {
  readonly #guard: ListenerGuard | undefined;

  /** @param guard checked for each new connection, because a server may end and another process may take its port */
  constructor(options: http.AgentOptions, guard?: ListenerGuard) {
    super(options);
    this.#guard = guard;
  }

  override createConnection(options: ClientRequestArgs, connected?: Connected): Socket | undefined {
    if (this.#guard && connected) {
      openGuarded(options, this.#guard, connected);
      return undefined;
    }
    return opened(options);
  }
}

function opened(options: ClientRequestArgs): Socket {
  const { timeout } = options;
  const socket = new PatientSocket(options as SocketConstructorOpts);
  if (timeout !== undefined) socket.setTimeout(timeout);
  return socket.connect(options as TcpSocketConnectOpts);
}

/** Checks the guard before and after connecting, because a process may take the port in between. */
function openGuarded(options: ClientRequestArgs, guard: ListenerGuard, connected: Connected): void {
  const refused = connected as (error: Error) => void; // Node passes only an error; its types require a stream too
  let before: string;
  try {
    before = guard.sockets();
  } catch (error) {
    process.nextTick(refused, error as Error);
    return;
  }
  const socket = opened(options);
  const late = setTimeout(() => {
    socket.destroy(new Error(`no connection within ${CONNECT_MS / 1_000} s`));
  }, CONNECT_MS);
  const failed = (error: Error): void => {
    clearTimeout(late);
    refused(error);
  };
  socket.once('error', failed);
  socket.once('connect', () => {
    clearTimeout(late);
    socket.off('error', failed);
    const why = changed(guard, before);
    if (why === undefined) connected(null, socket);
    else {
      socket.destroy();
      refused(why);
    }
  });
}

function changed(guard: ListenerGuard, before: string): Error | undefined {
  try {
    return guard.sockets() === before
      ? undefined
      : new Error('the listening sockets of the server changed while connecting');
  } catch (error) {
    return error as Error;
  }
}
