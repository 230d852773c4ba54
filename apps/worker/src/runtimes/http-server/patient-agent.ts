// Contract 1, "Custom runtimes", "its status, end-to-end headers and body come back as they are": also where a server refuses a body before it has read it.
import http, { type ClientRequestArgs } from 'node:http';
import { Socket, type SocketConstructorOpts, type TcpSocketConnectOpts } from 'node:net';

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

/** Of plain connections. */
export class PatientAgent extends http.Agent {
  override createConnection(options: ClientRequestArgs): Socket {
    const { timeout } = options;
    const socket = new PatientSocket(options as SocketConstructorOpts);
    if (timeout !== undefined) socket.setTimeout(timeout);
    return socket.connect(options as TcpSocketConnectOpts);
  }
}
