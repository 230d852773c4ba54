// The server of bench/custom-server.mjs: a minimal web server, so that the benchmark measures the path to the server.
import { once } from 'node:events';
import { createServer } from 'node:http';

/** Sends items of 64 bytes as fast as the client takes them. */
async function items(response, count) {
  const event = (n) => `data: ${String(n).padStart(64, '.')}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let n = 0; n < count && !response.destroyed; ) {
    let some = '';
    for (const end = Math.min(count, n + 100); n < end; n++) some += event(n);
    if (!response.write(some)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://server');
  if (pathname === '/items') items(response, Number(searchParams.get('count')));
  else {
    const said = pathname === '/where' ? { port: Number(process.env.PORT), pid: process.pid } : { hello: 'world' };
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(JSON.stringify(said)));
  }
});
server.listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => server.close());
