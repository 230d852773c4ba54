// Functions that return a `Response`.
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const typed = (type, body, status = 200) => new Response(body, { status, headers: { 'content-type': type } });

/** Returns a page. */
export const page = ({ status = 200 }) => typed('text/html; charset=utf-8', '<p>größe</p>\n', status);

/** Returns bytes that are not text. */
export const image = ({ size = 512 }) => typed('image/png', Buffer.alloc(size, '\xff\n', 'latin1'));

/** Returns a JSON value with a status. */
export const created = () => Response.json({ id: 1 }, { status: 201 });

/** Returns a problem. */
export const missing = () =>
  new Response('{"title":"no such thing"}', { status: 404, headers: { 'content-type': 'application/problem+json' } });

/** Returns no body. */
export const nothing = () => new Response(null, { status: 204 });

/** Returns events. */
export const events = () => typed('text/event-stream', 'event: a\ndata: 1\n\ndata: 2\n\n');

/** Returns lines of JSON. */
export const lines = () => typed('application/x-ndjson', '{"a":1}\n{"a":2}\n');

/** Sends a piece, then waits for a file, then sends the rest. */
export const waits = ({ path }) =>
  typed(
    'image/png',
    new ReadableStream({
      async start(body) {
        body.enqueue(Buffer.from('first'));
        while (!existsSync(path)) await pause(10);
        body.enqueue(Buffer.from('second'));
        body.close();
      },
    }),
  );

/** Fails after a number of pieces. */
export const breaks = ({ at }) => {
  let sent = 0;
  return typed(
    'image/png',
    new ReadableStream({
      pull(body) {
        if (sent++ === at) throw new Error('broken');
        body.enqueue(Buffer.from('piece'));
      },
    }),
  );
};
