// Contract 4: webhook receivers that do what a test says with a connection, down to its bytes.
import { once } from 'node:events';
import { createServer as createHttpServer, type Server as HttpServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export interface Receiver {
  readonly port: number;
  readonly url: string;
  close(): Promise<void>;
}

/** Closes a server and every connection that it still has. */
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

/** A receiver on the bare socket. */
export const rawReceiver = (behave: (socket: Socket) => void): Promise<Receiver> => listening(createServer(behave));

/** Where nobody listens, and nobody else can meanwhile: the near end of a connection that is held open. */
export async function refusing(): Promise<Receiver> {
  const far = await rawReceiver(() => {});
  const near = connect(far.port, '127.0.0.1').on('error', () => {});
  await once(near, 'connect');
  const port = near.localPort as number;
  return { port, url: `http://127.0.0.1:${port}/hook`, close: () => far.close() };
}

/** One that reads the request to the end of its head, then lets `answer` speak. */
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
 * A well-behaved receiver that keeps what it was sent; `answer` says its status and headers, request by request.
 *
 * @param before what it waits for before it answers
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
