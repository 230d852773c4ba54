// A web server whose checks answer as its test demands, by files in the folder of its start.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

const { PORT, MOODS, HOST = '127.0.0.1' } = process.env;
const has = (mood) => existsSync(join(MOODS, mood));

if (has('exits')) {
  console.error('first words');
  console.error('no module named model');
  process.exit(7);
}

const ways = {
  '/health': (response) => response.writeHead(has('unwell') ? 500 : 200).end(),
  '/ready'(response) {
    if (has('unready')) console.log('readiness checked');
    response.writeHead(has('unready') ? 503 : 204).end();
  },
  '/pid': (response) => response.end(String(process.pid)),
  '/port': (response) => response.end(PORT),
  '/name': (response) => response.end(process.env.APP_NAME),
  /** Stops listening, but does not exit. */
  '/leaves-its-port'(response) {
    server.close();
    setInterval(() => {}, 1000);
    response.writeHead(200, { connection: 'close' }).end('left');
  },
  '/hands-its-port-to-a-child'(response) {
    ways['/leaves-its-port'](response);
    spawn(process.execPath, [import.meta.filename], { stdio: 'inherit' });
  },
  /** Never answers. */
  '/hangs'(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: hangs\n\n');
  },
  /** The child has a separate session, as daemons have. */
  '/leaves-a-child': (response) => response.end(String(spawn('sleep', ['600'], { detached: true }).pid)),
  /** Allocates memory until it is stopped. */
  '/hoards'() {
    const held = [];
    setInterval(() => held.push(Buffer.alloc(8 * 1024 * 1024, 1)), 5);
  },
  /** Like a server that handles one request at a time: it answers no other request until it is done. */
  '/blocks'(response) {
    while (!has('done')) readFileSync(import.meta.filename);
    response.end('done');
  },
};

const server = createServer((request, response) => (ways[request.url] ?? ways['/pid'])(response));
if (!has('deaf')) server.listen(Number(PORT), HOST);
else {
  console.log('deaf');
  setInterval(() => {}, 1000);
}
process.on('SIGTERM', () => process.exit(0));
