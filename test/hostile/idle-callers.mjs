// Connections that say nothing, in a process of their own: it has its own limit of open files.
import { connect } from 'node:net';

const port = Number(process.argv[2]);
const MOST = 10_000;
/** At a time: a listener's queue holds 511. */
const AT_ONCE = 200;

const sockets = [];
/** One that has had an answer, so that it is idle and not late with its first request. */
const open = () =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('error', () => resolve(false));
    socket.once('data', () => {
      sockets.push(socket);
      resolve(true);
    });
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  });

let more = true;
while (more && sockets.length < MOST) {
  more = (await Promise.all(Array.from({ length: AT_ONCE }, open))).every(Boolean);
}
process.send(sockets.length);
