// Contract 4, "Allowed addresses": HTTP connections to checked addresses, with one exchange at a time and a bounded number of idle connections.
import { createSecureContext, type SecureContext } from 'node:tls';
import { Client, type Dispatcher } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { dial } from './dial.ts';
import { type Answer, Exchange, type ExchangeLimits } from './exchange.ts';
import { type NameLookup, nameLookup } from './name-lookup.ts';
import { withoutContinues } from './unasked-continue.ts';

/** Shorter than the 5 s of Node's servers, the shortest limit in wide use. Few sockets are therefore used while the receiver closes them. */
const KEEP_ALIVE_MS = 4000;
/** The limit if the receiver offers to keep a connection longer. */
const KEEP_ALIVE_MAX_MS = 10_000;

export interface GuardedAgentOptions {
  readonly policy: AddressPolicy;
  /** Milliseconds for name lookup, TCP and TLS together. Default 5 s. */
  readonly connectTimeoutMs?: number;
  /** The number of idle sockets, over all receivers. The socket that was idle longest is closed first. Default 256. */
  readonly maxIdle?: number;
  /** PEM certificates to trust in place of Node's roots. */
  readonly ca?: string;
  readonly lookup?: NameLookup;
}

/**
 * Hands out a connection for each exchange and keeps returned connections alive. Redirects are not followed, and requests are not retried.
 * The number of open sockets is at most `maxIdle` plus the number of connections in use.
 */
export class GuardedAgent {
  readonly #policy: AddressPolicy;
  readonly #lookup: NameLookup;
  readonly #connectTimeoutMs: number;
  readonly #maxIdle: number;
  readonly #secureContext: SecureContext;
  /** Ordered by the start of their idle time. The first connection is closed if there are too many. */
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

  /** Returns the number of idle connections. */
  get idle(): number {
    return this.#idle.size;
  }

  /**
   * Returns a connection to the origin of this URL: an idle connection, or a new connection that dials at its first request.
   * The caller must return the connection with `keep` or `discard`.
   *
   * @param fresh true to get a new connection always
   */
  connection(url: URL, { fresh = false } = {}): Connection {
    const kept = fresh ? undefined : this.#idleByOrigin.get(url.origin)?.at(-1);
    if (kept) this.#forget(kept);
    const connection = kept ?? this.#open(url);
    this.#busy.add(connection);
    return connection;
  }

  /** Returns a connection to the agent after its answer was read to the end. */
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

  /** Closes a connection that cannot be used again. An exchange in progress fails. */
  discard(connection: Connection): void {
    this.#busy.delete(connection);
    connection.destroy();
  }

  /** Closes all connections. Exchanges in progress fail. */
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
      // The limits of the exchange cover it completely, to the millisecond.
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

  /** Returns the connected address. After a failure, returns the address that was dialled or rejected. */
  get address(): string | undefined {
    return this.#address;
  }

  /** Returns whether the connection is open now. */
  get alive(): boolean {
    return this.#alive;
  }

  /** Returns whether the connection carried an earlier exchange. The receiver may be closing such a connection. */
  get reused(): boolean {
    return this.#used;
  }

  /** Sends one request and returns the start of its answer. @throws ConnectError, HeadTimeout or an error of undici if no answer arrives */
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
    // The promise of each aborted request reports the error.
    this.#client.destroy().catch(() => {});
  }
}
