// A notice board: a plain web server that listens on the port in PORT and needs no code for the service.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const notices = [];

/** Returns the posted notice: JSON, or one line of text. */
async function noticeOf(request) {
  request.setEncoding('utf8');
  let text = '';
  for await (const piece of request) text += piece;
  return request.headers['content-type']?.startsWith('application/json') ? JSON.parse(text) : { text };
}

const answers = {
  'GET /ready': (_request, response) => response.writeHead(204).end(),
  'GET /notices': (_request, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(notices)),
  async 'POST /notices'(request, response) {
    const notice = await noticeOf(request);
    notices.push(notice);
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(notice));
  },
  /** Sends named events, one a second, until the reader disconnects. */
  async 'GET /ticks'(_request, response) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let n = 1; !response.destroyed; n++) {
      if (!response.write(`event: tick\nid: ${n}\ndata: {"n":${n},"notices":${notices.length}}\n\n`)) {
        await Promise.race([once(response, 'drain'), once(response, 'close')]);
      }
      await sleep(1000);
    }
  },
};

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://board');
  const answer = answers[`${request.method} ${pathname}`];
  if (answer === undefined) response.writeHead(404).end();
  else Promise.resolve(answer(request, response)).catch(() => response.writeHead(400).end());
});
server.listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => server.close());
