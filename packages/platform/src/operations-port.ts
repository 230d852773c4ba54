// Contract 6: every service's port for its own network: `/healthz`, `/readyz`, `/metrics`, and what a service mounts beside them.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openRegistry, type Registry } from './metrics.ts';

/** Why the service cannot serve, in words for whoever reads the probe's answer; nothing where it can. */
export type ReadyCheck = () => string | undefined | Promise<string | undefined>;

const NOT_STARTED: ReadyCheck = () => 'it is starting';
const JSON_TYPE = 'application/json; charset=utf-8';
/** Probes, scrapers, a browser or two: more than that is a mistake somewhere. */
const MOST_CONNECTIONS = 256;
const REQUEST_MS = 10_000;

/**
 * A bare HTTP server, for all three services the same: a probe must be answered while everything else is busy or away.
 *
 * It listens from the first moment on (alive, not ready) until Redis has been left (still alive, no longer ready).
 */
export class OperationsPort {
  /** The service's metrics register here. */
  readonly registry: Registry = openRegistry();
  readonly #server: Server;
  readonly #mounted = new Map<string, RequestListener>();
  readonly #stopping: () => boolean;
  #check = NOT_STARTED;

  /** @param stopping whether a stop was asked for: the service is not ready then, whatever its check says */
  constructor(stopping: () => boolean = () => false) {
    this.#stopping = stopping;
    this.#server = createServer({ headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS }, (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        if (response.headersSent) response.destroy();
        else end(response, 500, JSON.stringify({ status: 'failed', why: String(error) }));
      });
    });
    this.#server.maxConnections = MOST_CONNECTIONS;
  }

  /** Sets what decides on `/readyz`; until then the service counts as starting. The check must not throw. */
  readyWhen(check: ReadyCheck): void {
    this.#check = check;
  }

  /**
   * Answers `path` and everything below it by `handler`, which sees the whole URL.
   *
   * @param path such as `/queues`; may be mounted at any time
   */
  mount(path: string, handler: RequestListener): void {
    this.#mounted.set(path, handler);
  }

  /** @returns the port, for 0 the one that the system chose @throws the system's error, such as EADDRINUSE */
  async listen(host: string, port: number): Promise<number> {
    this.#server.listen({ host, port });
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves when nobody is connected any more; closing twice, or before it listens, is safe. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '/'] = (request.url ?? '/').split('?', 1);
    const mounted = [...this.#mounted].find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`));
    if (mounted) {
      mounted[1](request, response);
      return;
    }
    const page = { '/healthz': this.#alive, '/readyz': this.#ready, '/metrics': this.#metrics }[path];
    if (page === undefined) return end(response, 404, '{"status":"there is nothing here"}');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      return end(response, 405, '{"status":"read only"}');
    }
    return page(response);
  }

  /** To answer at all says that the event loop turns. */
  readonly #alive = (response: ServerResponse): void => end(response, 200, '{"status":"alive"}');

  readonly #ready = async (response: ServerResponse): Promise<void> => {
    const why = this.#stopping() ? 'it is stopping' : await this.#check();
    if (why === undefined) return end(response, 200, '{"status":"ready"}');
    return end(response, 503, JSON.stringify({ status: 'not ready', why }));
  };

  readonly #metrics = async (response: ServerResponse): Promise<void> =>
    end(response, 200, await this.registry.metrics(), this.registry.contentType);
}

function end(response: ServerResponse, status: number, body: string, type = JSON_TYPE): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}
