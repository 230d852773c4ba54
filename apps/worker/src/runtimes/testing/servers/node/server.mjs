// The functions of the conformance suite as a web server: plain Node, without a framework.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

let produced = 0;

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const json = (response, value) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
};

/** Sends items as events, as fast as the reader takes them. */
async function events(response, items) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for await (const item of items) {
    if (response.destroyed) return;
    const text = item.split('\n').map((line) => `data: ${line}\n`);
    if (!response.write(`${text.join('')}\n`)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}

const deeds = {
  echo: (response, _params, body) => response.writeHead(200, { 'content-type': 'application/json' }).end(body),
  nothing: (response) => json(response, null),
  add: (response, { a, b = 2 }) => json(response, a + b),
  async brief(response, { ms }) {
    await sleep(ms);
    json(response, 'whole');
  },
  count: (response, { n = 3 }) =>
    events(
      response,
      (function* () {
        for (let i = 0; i < n; i++) yield `item ${i}`;
      })(),
    ),
  /** Continues after an item when the file with the item's number exists. */
  step_by_step: (response, { folder, n = 3 }) =>
    events(
      response,
      (async function* () {
        for (let i = 0; i < n; i++) {
          yield String(i);
          while (!existsSync(join(folder, String(i)))) await sleep(10);
        }
      })(),
    ),
  sleeper(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: asleep\n\n');
    response.on('close', () => console.log('cleaned up'));
  },
  breaks_later(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    setTimeout(() => response.destroy(), 50);
  },
  much: (response, { n, size }) =>
    events(
      response,
      (function* () {
        for (let i = 0; i < n; i++) yield 'x'.repeat(size);
      })(),
    ),
  flood_large: (response, { n = 1000 }) =>
    events(
      response,
      (function* () {
        for (produced = 0; produced < n; ) {
          produced++;
          yield 'x'.repeat(65_536);
        }
      })(),
    ),
  produced: (response) => json(response, produced),
  large_result: (response, { n }) =>
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': n }).end('x'.repeat(n)),
  large_item: (response, { n }) => events(response, ['fine', 'x'.repeat(n)]),
  prints(response) {
    console.log('to stdout');
    console.error('to stderr');
    json(response, null);
  },
  exits: () => process.exit(3),
  segfaults: () => process.kill(process.pid, 'SIGSEGV'),
  killed: () => process.kill(process.pid, 'SIGKILL'),
  crashes_after_an_item(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n');
    setTimeout(() => process.exit(4), 50);
  },
  health: (response) => json(response, 'well'),
};

const server = createServer(async (request, response) => {
  const name = new URL(request.url, 'http://server').pathname.slice(1);
  const body = await bodyOf(request);
  const deed = deeds[name];
  if (!deed) response.writeHead(404).end();
  else deed(response, request.method === 'POST' ? JSON.parse(body.toString() || '{}') : {}, body);
});
server.listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
