// `--scale gateway=2`: one port in front of several gateways. Connections, not requests: bytes pass as they come, whatever is said in them.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** How long a connection waits for a gateway when there is none just now: longer than one takes to be started again. */
const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** Takes connections on one port and passes each on to one of the live servers, in turn. */
export class Balancer {
  readonly #server: Server;
  /** By name, in the order of their turns. */
  readonly #live = new Map<string, number>();
  readonly #open = new Set<Socket>();

  constructor() {
    // Half-open: who has said all may still be answered; the end is passed on as what it is.
    this.#server = createServer(
      { allowHalfOpen: true, noDelay: true, keepAlive: true, pauseOnConnect: true },
      (caller) => {
        void this.#serve(caller);
      },
    );
  }

  /** @throws Error of the system where it cannot listen there */
  async listen(host: string, port: number): Promise<number> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    return (this.#server.address() as { port: number }).port;
  }

  /** A server on this machine takes its turns from now on. */
  add(name: string, port: number): void {
    this.#live.set(name, port);
  }

  /** It gets no further connections; those it has go on. */
  remove(name: string): void {
    this.#live.delete(name);
  }

  /** Takes no further connections. Harmless when done twice. */
  refuse(): void {
    if (this.#server.listening) this.#server.close();
  }

  /** Cuts those that are left. */
  close(): void {
    this.refuse();
    for (const socket of this.#open) socket.destroy();
  }

  async #serve(caller: Socket): Promise<void> {
    this.#open.add(caller);
    caller.once('close', () => this.#open.delete(caller)).on('error', () => {});
    const server = await this.#connect(caller);
    if (!server) {
      caller.destroy();
      return;
    }
    // What becomes of one becomes of the other: an end, a reset, a reader that does not drain.
    server.on('error', () => caller.resetAndDestroy()).once('close', () => caller.destroySoon());
    caller.on('error', () => server.resetAndDestroy()).once('close', () => server.destroy());
    server.pipe(caller);
    caller.pipe(server);
  }

  /** A connection to the next server that takes one; nothing has been read from the caller yet, so any other is as good. */
  async #connect(caller: Socket): Promise<Socket | undefined> {
    const giveUpAt = performance.now() + WAIT_MS;
    do {
      for (let tried = this.#live.size; tried > 0; tried--) {
        const next = this.#next();
        const socket = next && (await dial(next));
        if (socket && caller.destroyed) socket.destroy();
        if (caller.destroyed) return undefined;
        if (socket) return socket;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS).unref());
    } while (!caller.destroyed && this.#server.listening && performance.now() < giveUpAt);
    return undefined;
  }

  /** The port whose turn it is; its turn comes again after all others. */
  #next(): number | undefined {
    const [first] = this.#live;
    if (!first) return undefined;
    const [name, port] = first;
    this.#live.delete(name);
    this.#live.set(name, port);
    return port;
  }
}

/** A connection to a server on this machine, or nothing where it takes none. */
function dial(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true });
    const refused = (): void => resolve(undefined);
    socket.once('error', refused).once('connect', () => {
      socket.off('error', refused);
      resolve(socket);
    });
  });
}
