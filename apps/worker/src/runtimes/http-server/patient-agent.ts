// Contract 1, "Custom runtimes", "its status, end-to-end headers and body come back as they are": also where a server refuses a body before it has read it.
import http, { type ClientRequestArgs } from 'node:http';
import { Socket, type SocketConstructorOpts, type TcpSocketConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ListenerGuard } from './listener-guard.ts';

type WriteDone = (error?: Error | null) => void;

/**
 * A connection whose answer is read although its other side takes nothing any more: a failed write alone would drop what has come (RFC 9112 §9.6).
 * Its end is told by the reading side, which comes to it as surely.
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

/** For a server whose machine does not take connections: the system's own limit is minutes. */
export const CONNECT_MS = 10_000;

type Connected = (error: Error | null, stream: Duplex) => void;

/** Of plain connections. */
export class PatientAgent extends http.Agent {
  readonly #guard: ListenerGuard | undefined;

  /** @param guard checked whenever a connection is opened: a server may end, and another process take its port */
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

/** The guard is asked before and after: a process may take the port in between. */
function openGuarded(options: ClientRequestArgs, guard: ListenerGuard, connected: Connected): void {
  const refused = connected as (error: Error) => void; // Node calls it so, its types do not say it
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
    return guard.sockets() === before ? undefined : new Error('the server began to listen anew');
  } catch (error) {
    return error as Error;
  }
}
