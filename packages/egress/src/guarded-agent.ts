// webhooks.md "Address policy" and "An attempt": HTTP connections to checked addresses only, kept alive within bounds, for one exchange at a time.
import { createSecureContext, type SecureContext } from 'node:tls';
import { Client, type Dispatcher } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { dial } from './dial.ts';
import { type Answer, Exchange, type ExchangeLimits } from './exchange.ts';
import { type NameLookup, nameLookup } from './name-lookup.ts';
import { withoutContinues } from './unasked-continue.ts';

/** Below the 5 s after which Node's own servers, the shortest in wide use, close: rarely is a socket used as its peer closes it. */
const KEEP_ALIVE_MS = 4000;
/** However long a receiver offers to keep a connection. */
const KEEP_ALIVE_MAX_MS = 10_000;

export interface GuardedAgentOptions {
  readonly policy: AddressPolicy;
  /** For name lookup, TCP and TLS together. Default 5 s. */
  readonly connectTimeoutMs?: number;
  /** Sockets kept alive over all receivers; the one idle longest goes first. Default 256. */
  readonly maxIdle?: number;
  /** PEM certificates to trust in place of Node's roots. */
  readonly ca?: string;
  readonly lookup?: NameLookup;
}

/**
 * Hands out connections, each for one exchange, and keeps what is given back. It follows no redirect and retries nothing.
 * Beyond `maxIdle` it holds exactly as many sockets as are handed out.
 */
export class GuardedAgent {
  readonly #policy: AddressPolicy;
  readonly #lookup: NameLookup;
  readonly #connectTimeoutMs: number;
  readonly #maxIdle: number;
  readonly #secureContext: SecureContext;
  /** In the order in which they became idle: the first is the one to go when there are too many. */
  readonly #idle = new Set<Connection>();
  readonly #idleByOrigin = new Map<string, Connection[]>();
  readonly #busy = new Set<Connection>();

  constructor(options: GuardedAgentOptions) {
    this.#policy = options.policy;
    this.#lookup = options.lookup ?? nameLookup();
    this.#connectTimeoutMs = options.connectTimeoutMs ?? 5000;
    this.#maxIdle = options.maxIdle ?? 256;
    this.#secureContext = createSecureContext(options.ca === undefined ? {} : { ca: options.ca });
  }

  /** How many connections are kept alive for later. */
  get idle(): number {
    return this.#idle.size;
  }

  /**
   * A connection to the origin of this URL: a kept one, or a new one that dials at its first request. Give it back by `keep` or `discard`.
   *
   * @param fresh not a kept one
   */
  connection(url: URL, { fresh = false } = {}): Connection {
    const kept = fresh ? undefined : this.#idleByOrigin.get(url.origin)?.at(-1);
    if (kept) this.#forget(kept);
    const connection = kept ?? this.#open(url);
    this.#busy.add(connection);
    return connection;
  }

  /** Gives back a connection whose answer was read to its end. */
  keep(connection: Connection): void {
    if (!this.#busy.delete(connection)) return;
    if (!connection.alive) {
      connection.destroy();
      return;
    }
    this.#idle.add(connection);
    const sameOrigin = this.#idleByOrigin.get(connection.origin);
    if (sameOrigin) sameOrigin.push(connection);
    else this.#idleByOrigin.set(connection.origin, [connection]);
    const [longest] = this.#idle;
    if (this.#idle.size > this.#maxIdle && longest) this.#drop(longest);
  }

  /** Gives back a connection that is of no more use: whatever it still does is broken off. */
  discard(connection: Connection): void {
    this.#busy.delete(connection);
    connection.destroy();
  }

  /** Breaks off all connections. Exchanges under way fail. */
  close(): void {
    for (const connection of this.#idle) this.#drop(connection);
    for (const connection of this.#busy) this.discard(connection);
  }

  #open(url: URL): Connection {
    const options = {
      policy: this.#policy,
      lookup: this.#lookup,
      timeoutMs: this.#connectTimeoutMs,
      secureContext: this.#secureContext,
    };
    const connection: Connection = new Connection(url, options, () => {
      if (this.#idle.has(connection)) this.#drop(connection);
    });
    return connection;
  }

  #drop(connection: Connection): void {
    this.#forget(connection);
    connection.destroy();
  }

  #forget(connection: Connection): void {
    this.#idle.delete(connection);
    const sameOrigin = this.#idleByOrigin.get(connection.origin);
    const at = sameOrigin?.indexOf(connection) ?? -1;
    if (!sameOrigin || at === -1) return;
    sameOrigin.splice(at, 1);
    if (sameOrigin.length === 0) this.#idleByOrigin.delete(connection.origin);
  }
}

/** One connection of a GuardedAgent. */
export class Connection {
  readonly origin: string;
  readonly #client: Client;
  #giveUp: () => void = () => {};
  #expectAnswer: () => void = () => {};
  #address: string | undefined;
  #alive = false;
  #used = false;

  constructor(url: URL, options: Parameters<typeof dial>[1], onDisconnect: () => void) {
    this.origin = url.origin;
    const secure = url.protocol === 'https:';
    const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const target = { secure, hostname, port: Number(url.port) || (secure ? 443 : 80) };
    this.#client = new Client(url.origin, {
      connect: (_, done) => {
        this.#giveUp = dial(target, options, (error, socket) => {
          this.#address = socket?.remoteAddress ?? error?.address;
          if (!socket) return done(error ?? new Error('no socket'), null);
          this.#expectAnswer = withoutContinues(socket);
          done(null, socket);
        });
      },
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      // The caller's own limit covers the whole exchange, to the millisecond.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.#client.on('connect', () => {
      this.#alive = true;
    });
    this.#client.on('disconnect', () => {
      this.#alive = false;
      onDisconnect();
    });
  }

  /** The address it is connected to; after a failure the one that was tried or refused. */
  get address(): string | undefined {
    return this.#address;
  }

  /** Whether it is connected now. */
  get alive(): boolean {
    return this.#alive;
  }

  /** Whether an exchange was made on it before the present one: its peer may have been closing it. */
  get reused(): boolean {
    return this.#used;
  }

  /** @throws ConnectError, HeadTimeout, or undici's error, where no answer has come */
  async exchange(options: Omit<Dispatcher.DispatchOptions, 'origin'>, limits: ExchangeLimits): Promise<Answer> {
    this.#expectAnswer();
    const exchange = new Exchange(limits);
    this.#client.dispatch(options, exchange);
    const answer = await exchange.answer;
    this.#used = true;
    return answer;
  }

  destroy(): void {
    this.#giveUp();
    // Requests that it breaks off are told by their own rejection.
    this.#client.destroy().catch(() => {});
  }
}
