// A connection to a gateway that a test can lose and recover. The gateway serves the console and the API through it.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LosableGateway {
  readonly port: number;
  /** Closes the port and every connection, as a dead gateway does. */
  lose(): Promise<void>;
  /** Listens on the same port again. */
  recover(): Promise<void>;
  stop(): Promise<void>;
}

/** @param gateway the port of the gateway */
export async function losableGateway(gateway: number): Promise<LosableGateway> {
  const server = createServer((incoming, answer) => forward(gateway, incoming, answer));
  const listen = (at: number): Promise<void> => new Promise((resolve) => server.listen(at, '127.0.0.1', resolve));
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await listen(0);
  const { port: own } = server.address() as AddressInfo;
  return { port: own, lose: close, recover: () => listen(own), stop: close };
}

function forward(gateway: number, incoming: IncomingMessage, answer: ServerResponse): void {
  const { url, method, headers } = incoming;
  const onward = request({ host: '127.0.0.1', port: gateway, path: url, method, headers }, (received) => {
    answer.writeHead(received.statusCode ?? 502, received.headers);
    received.pipe(answer);
    // A gateway that dies must break the answer for the browser too.
    received.on('error', () => answer.destroy());
  });
  onward.on('error', () => answer.destroy());
  answer.on('close', () => onward.destroy());
  incoming.pipe(onward);
}
