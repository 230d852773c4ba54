// Contract 6, "Ports and pages": the operations port with `/healthz`, `/readyz`, `/metrics`, and a service's own pages.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openRegistry, type Registry } from './metrics.ts';

/** Returns the reason why the service is not ready, or nothing if the service is ready. The text is shown to the reader of the probe. */
export type ReadyCheck = () => string | undefined | Promise<string | undefined>;

const NOT_STARTED: ReadyCheck = () => 'it is starting';
const JSON_TYPE = 'application/json; charset=utf-8';
/** Enough for probes, scrapers and a few browsers. More connections are a mistake. */
const MOST_CONNECTIONS = 256;
const REQUEST_MS = 10_000;

/**
 * A bare HTTP server, the same for all services, so that it answers probes while other parts of the service are busy or away.
 *
 * It listens from the start of the service (alive, not ready) until Redis was closed (alive, not ready again).
 */
export class OperationsPort {
  /** The registry for the service's metrics. */
  readonly registry: Registry = openRegistry();
  readonly #server: Server;
  readonly #mounted = new Map<string, RequestListener>();
  readonly #stopping: () => boolean;
  #check = NOT_STARTED;

  /** @param stopping whether the service is stopping; a stopping service is not ready, even if its check passes */
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

  /** Sets the check for `/readyz`. Until then the service is reported as starting. The check must not throw. */
  readyWhen(check: ReadyCheck): void {
    this.#check = check;
  }

  /**
   * Answers requests for `path` and all paths below it with `handler`. The handler sees the whole URL.
   *
   * @param path such as `/queues`; a path may be added at any time
   */
  mount(path: string, handler: RequestListener): void {
    this.#mounted.set(path, handler);
  }

  /** Starts to listen. @returns the port; for 0, the port that the system chose @throws the system's error, such as EADDRINUSE */
  async listen(host: string, port: number): Promise<number> {
    this.#server.listen({ host, port });
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves when all connections are closed. A second close, or a close before `listen`, is safe. */
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
    if (page === undefined) return end(response, 404, '{"status":"there is no page at this path"}');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      return end(response, 405, '{"status":"read only"}');
    }
    return page(response);
  }

  /** An answer proves that the event loop runs. */
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
