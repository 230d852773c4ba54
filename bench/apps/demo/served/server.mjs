// What bench/custom-server.mjs calls: the least that a web server can do, so that what is measured is the way to it.
import { once } from 'node:events';
import { createServer } from 'node:http';

/** 64 bytes an item, as fast as they are taken. */
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
