// Opens idle connections in a separate process, because each process has its own limit of open files.
import { connect } from 'node:net';

const port = Number(process.argv[2]);
const MOST = 10_000;
/** Connections opened at the same time: a listener's queue holds 511. */
const AT_ONCE = 200;

const sockets = [];
/** Opens a connection and gets one answer. Then the connection is idle, and the timeout for a first request no longer applies. */
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
