// Contract 4: webhook receivers whose connections a test controls, down to the bytes.
import { once } from 'node:events';
import { createServer as createHttpServer, type Server as HttpServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export interface Receiver {
  readonly port: number;
  readonly url: string;
  close(): Promise<void>;
}

/** Closes a server and all its open connections. */
export async function listening(server: Server | HttpServer, scheme = 'http'): Promise<Receiver> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${scheme}://127.0.0.1:${port}/hook`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** A receiver on a bare socket. */
export const rawReceiver = (behave: (socket: Socket) => void): Promise<Receiver> => listening(createServer(behave));

/** An address without a listener, and no other process can listen there: the near end of an open connection. */
export async function refusing(): Promise<Receiver> {
  const far = await rawReceiver(() => {});
  const near = connect(far.port, '127.0.0.1').on('error', () => {});
  await once(near, 'connect');
  const port = near.localPort as number;
  return { port, url: `http://127.0.0.1:${port}/hook`, close: () => far.close() };
}

/** A receiver that reads the request to the end of its head, then calls `answer`. */
export const rawAnswer = (answer: (socket: Socket) => void): Promise<Receiver> =>
  rawReceiver((socket) => {
    let seen = '';
    const read = (chunk: Buffer): void => {
      seen += chunk.toString('latin1');
      if (!seen.includes('\r\n\r\n')) return;
      socket.off('data', read);
      socket.resume();
      answer(socket);
    };
    socket.on('data', read);
  });

export interface Request {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * A correct receiver that keeps its requests; `answer` returns status and headers for each request.
 *
 * @param before a promise that the receiver awaits before its answer
 */
export async function receiver(
  answer: (request: Request, count: number) => { status: number; headers?: Record<string, string> } | undefined,
  before: () => Promise<unknown> = async () => {},
): Promise<Receiver & { readonly requests: Request[] }> {
  const requests: Request[] = [];
  const server = createHttpServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const request = { path: incoming.url ?? '', headers: incoming.headers, body: Buffer.concat(chunks) };
    requests.push(request);
    const count = requests.length;
    const said = answer(request, count);
    await before();
    if (said) response.writeHead(said.status, said.headers).end(`answer ${count}`);
  });
  return { ...(await listening(server)), requests };
}
