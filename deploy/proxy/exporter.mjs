// Metrics of the proxy for Prometheus: docs/decisions/0029-the-proxys-metrics.md. Runs in the proxy's network namespace, without packages.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:http';

const STATUS_PAGE = process.env.STATUS_PAGE ?? 'http://127.0.0.1:9112/status';
const { SYSLOG_PORT = '9114', OPERATIONS_PORT = '9113' } = process.env;
/** nginx answers from memory, so an answer that takes longer never comes. */
const STATUS_MS = 2000;

/** Answers by status. Counters begin at 0 because Prometheus' `increase` needs a first value. */
const unserved = new Map([
  ['502', 0],
  ['503', 0],
]);

// nginx sends one datagram for each line: "<190>Nov 22 12:00:00 host proxy: 503".
const lines = createSocket('udp4');
lines.on('message', (line) => {
  const status = /: (50[234])$/.exec(line.toString('latin1', 0, 200).trimEnd())?.[1];
  if (status) unserved.set(status, (unserved.get(status) ?? 0) + 1);
});

/** Returns the number of callers' connections at nginx, or undefined if nginx does not answer. */
async function openConnections() {
  try {
    const answer = await fetch(STATUS_PAGE, { signal: AbortSignal.timeout(STATUS_MS) });
    const count = /^Active connections: (\d+)/.exec(await answer.text())?.[1];
    // The request of this exporter is one of the connections.
    return count === undefined ? undefined : Number(count) - 1;
  } catch {
    return undefined;
  }
}

const metric = (name, type, help, samples) =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples.map((sample) => `${name}${sample}`), ''].join('\n');

async function metrics() {
  const open = await openConnections();
  return [
    metric('inference_proxy_proxy_up', 'gauge', 'Whether the proxy answers', [` ${open === undefined ? 0 : 1}`]),
    metric('inference_proxy_proxy_connections', 'gauge', 'Connections that the proxy has open', [` ${open ?? 'NaN'}`]),
    metric(
      'inference_proxy_proxy_unserved_total',
      'counter',
      'Requests that no gateway answered, by the status that the proxy answered itself',
      [...unserved].map(([status, count]) => `{status="${status}"} ${count}`),
    ),
  ].join('');
}

const server = createServer(async ({ url }, answer) => {
  if (url === '/healthz') return void answer.end('ok');
  if (url !== '/metrics') return void answer.writeHead(404).end();
  answer.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
  return void answer.end(await metrics());
});

lines.bind(Number(SYSLOG_PORT), '127.0.0.1');
server.listen(Number(OPERATIONS_PORT), '0.0.0.0');
process.on('SIGTERM', () => process.exit(0));
