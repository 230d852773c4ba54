// `--scale gateway=2`: one port in front of several gateways. Balances connections, not requests, and passes bytes without parsing them.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** How long a connection waits if no gateway runs: longer than the restart of a gateway. */
const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** Accepts connections on one port and passes each connection to one of the live servers, in turn. */
export class Balancer {
  readonly #server: Server;
  /** Ports by name, in the order of their turns. */
  readonly #live = new Map<string, number>();
  readonly #open = new Set<Socket>();

  constructor() {
    // Half-open: a caller that has ended its side still gets the answer. The end is passed on as an end.
    this.#server = createServer(
      { allowHalfOpen: true, noDelay: true, keepAlive: true, pauseOnConnect: true },
      (caller) => {
        void this.#serve(caller);
      },
    );
  }

  /** @throws Error of the system if it cannot listen on the address */
  async listen(host: string, port: number): Promise<number> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    return (this.#server.address() as { port: number }).port;
  }

  /** Adds a server on this machine, which takes its turns from now on. */
  add(name: string, port: number): void {
    this.#live.set(name, port);
  }

  /** Removes a server: it gets no further connections, and its open connections continue. */
  remove(name: string): void {
    this.#live.delete(name);
  }

  /** Accepts no further connections. May be called twice. */
  refuse(): void {
    if (this.#server.listening) this.#server.close();
  }

  /** Cuts the open connections. */
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
    // An end, a reset or a reader that does not drain on one side has the same effect on the other side.
    server.on('error', () => caller.resetAndDestroy()).once('close', () => caller.destroySoon());
    caller.on('error', () => server.resetAndDestroy()).once('close', () => server.destroy());
    server.pipe(caller);
    caller.pipe(server);
  }

  /** Connects to the next server that accepts. Any server will do, because nothing has been read from the caller yet. */
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

  /** Returns the port of the next server, and moves this server to the end of the turns. */
  #next(): number | undefined {
    const [first] = this.#live;
    if (!first) return undefined;
    const [name, port] = first;
    this.#live.delete(name);
    this.#live.set(name, port);
    return port;
  }
}

/** Connects to a server on this machine. Resolves with undefined if the server accepts no connection. */
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
