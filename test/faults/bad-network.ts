// A bad network between a service and Redis: a TCP proxy that delays, cuts, half-opens, stalls and loses replies, until it is healed.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export type Trouble =
  | { readonly is: 'none' }
  /** Delays every byte from Redis. */
  | { readonly is: 'delayed'; readonly ms: number }
  /** Cuts every open connection and every new connection at once. */
  | { readonly is: 'cut' }
  /** Accepts connections, keeps them open and passes no bytes. These connections stay dead after healing, as if the other machine had vanished. */
  | { readonly is: 'half-open' }
  /** Leaves the bytes of Redis unread until the network is healed. */
  | { readonly is: 'stalled' }
  /** Passes commands. Loses one reply in `every`, and closes its connection. */
  | { readonly is: 'replies-lost'; readonly oneIn: number };

/** One connection: the service's socket and the socket to Redis. */
interface Line {
  readonly service: Socket;
  readonly redis: Socket;
  /** No bytes pass, and neither end is notified. */
  dead: boolean;
  /** Settles when the bytes that Redis has sent so far are passed on. Delayed bytes keep their order. */
  passed: Promise<void>;
}

export class BadNetwork {
  readonly #server: Server;
  readonly #lines = new Set<Line>();
  #trouble: Trouble = { is: 'none' };
  #replies = 0;

  readonly #redisPort: number;

  /** @param redisPort on 127.0.0.1 */
  constructor(redisPort: number) {
    this.#redisPort = redisPort;

    this.#server = createServer({ noDelay: true }, (service) => this.#serve(service));
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Sets the fault from now on. `none` heals every connection except dead ones. */
  set(trouble: Trouble): void {
    this.#trouble = trouble;
    for (const line of this.#lines) {
      if (trouble.is === 'cut') cut(line);
      if (trouble.is === 'half-open') line.dead = true;
      if (trouble.is === 'stalled') line.redis.pause();
      else line.redis.resume();
    }
  }

  close(): void {
    this.#server.close();
    for (const line of this.#lines) cut(line);
  }

  #serve(service: Socket): void {
    const { is } = this.#trouble;
    const redis = connect({ port: this.#redisPort, host: '127.0.0.1', noDelay: true });
    const line: Line = { service, redis, dead: is === 'half-open', passed: Promise.resolve() };
    this.#lines.add(line);
    const ended = (): void => {
      // A dead line does not report the other end's close.
      if (line.dead && !(service.destroyed && redis.destroyed)) return;
      this.#lines.delete(line);
      cut(line);
    };
    for (const socket of [service, redis]) socket.on('error', () => {}).on('close', ended);
    service.on('data', (bytes: Buffer) => {
      if (!line.dead) redis.write(bytes);
    });
    redis.on('data', (bytes: Buffer) => {
      const dueAt = performance.now() + (this.#trouble.is === 'delayed' ? this.#trouble.ms : 0);
      line.passed = line.passed.then(() => this.#reply(line, bytes, dueAt));
    });
    if (is === 'cut') cut(line);
    if (is === 'stalled') redis.pause();
  }

  async #reply(line: Line, bytes: Buffer, dueAt: number): Promise<void> {
    const leftMs = dueAt - performance.now();
    if (leftMs > 0) await sleep(leftMs);
    const trouble = this.#trouble;
    if (line.dead || line.service.destroyed) return;
    if (trouble.is === 'replies-lost' && ++this.#replies % trouble.oneIn === 0) cut(line);
    else if (!line.service.write(bytes)) {
      line.redis.pause();
      line.service.once('drain', () => {
        if (this.#trouble.is !== 'stalled') line.redis.resume();
      });
    }
  }
}

function cut({ service, redis }: Line): void {
  service.resetAndDestroy();
  redis.resetAndDestroy();
}
