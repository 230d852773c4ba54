// Contract 6: the gateway's `/metrics` about open connections, streams and bodies, read at each scrape.
import type { Server } from 'node:http';
import type { ErrorCode } from '@inference-proxy/contracts';
import { Counter, Gauge, type Registry } from '@inference-proxy/platform';

export function gaugeConnections(registry: Registry, server: Pick<Server, 'getConnections'>): void {
  new Gauge({
    name: 'inference_proxy_connections',
    help: 'Connections of callers',
    registers: [registry],
    collect() {
      return new Promise((resolve) =>
        server.getConnections((error, count) => {
          if (!error) this.set(count);
          resolve();
        }),
      );
    },
  });
}

/** Returns the current counts of open streams and held bytes. */
export interface OpenThings {
  readonly streams: () => number;
  readonly bodyBytes: () => number;
}

export function gaugeOpenThings(registry: Registry, { streams, bodyBytes }: OpenThings): void {
  const registers = [registry];
  new Gauge({
    name: 'inference_proxy_open_streams',
    help: 'Streams under way: the head of the answer was sent, the end was not',
    registers,
    collect() {
      this.set(streams());
    },
  });
  new Gauge({
    name: 'inference_proxy_body_bytes_in_flight',
    help: 'Bytes of request bodies in memory, over all callers',
    registers,
    collect() {
      this.set(bodyBytes());
    },
  });
}

/** Counts requests that are answered with an error and without an envelope, such as a wrong token or an unknown path. */
export function errorCounter(registry: Registry): (code: ErrorCode) => void {
  const counter = new Counter({
    name: 'inference_proxy_error_answers_total',
    help: 'Requests that were answered by an error without an envelope, by error code',
    labelNames: ['code'],
    registers: [registry],
  });
  return (code) => counter.inc({ code });
}
