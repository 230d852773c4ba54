// The bad network of the tests: each kind of fault has the effect of its name.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { listening, type Receiver } from '../receiver/receivers.ts';
import { BadNetwork } from './bad-network.ts';

let echo: Receiver;
let network: BadNetwork;
let port: number;
let heard = '';

beforeAll(async () => {
  echo = await listening(
    createServer((socket) => {
      socket.on('data', (bytes) => {
        heard += bytes;
        socket.write(bytes);
      });
    }),
  );
  network = new BadNetwork(echo.port);
  port = await network.listen();
});
afterAll(async () => {
  network.close();
  await echo.close();
});

const open = async (): Promise<Socket> => {
  const socket = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  await once(socket, 'connect');
  return socket;
};

const closed = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once('close', resolve));

const says = async (socket: Socket, text: string): Promise<string> => {
  const answer = once(socket, 'data');
  socket.write(text);
  return String((await answer)[0]);
};

test('a delayed connection passes bytes in order', async () => {
  const socket = await open();
  expect(await says(socket, 'a')).toBe('a');
  network.set({ is: 'delayed', ms: 50 });
  const late = says(socket, 'b');
  network.set({ is: 'none' });
  expect(await late).toBe('b');
  expect(await says(socket, 'c')).toBe('c');
  socket.destroy();
});

test('a cut closes the connection', async () => {
  const socket = await open();
  const cut = closed(socket);
  network.set({ is: 'cut' });
  await cut;
  network.set({ is: 'none' });
});

test('half-open connections stay dead after healing, and new connections work', async () => {
  const dead = await open();
  expect(await says(dead, 'before')).toBe('before');
  let came = '';
  dead.on('data', (bytes) => {
    came += bytes;
  });
  network.set({ is: 'half-open' });
  dead.write('during');
  network.set({ is: 'none' });
  dead.write('after');
  const fresh = await open();
  expect(await says(fresh, 'fresh')).toBe('fresh');
  expect(came).toBe('');
  expect(dead.destroyed).toBe(false);
  for (const socket of [dead, fresh]) socket.destroy();
});

test('stalled bytes arrive when the network is healed', async () => {
  const socket = await open();
  expect(await says(socket, 'x')).toBe('x');
  network.set({ is: 'stalled' });
  const answer = says(socket, 'y');
  network.set({ is: 'none' });
  expect(await answer).toBe('y');
  socket.destroy();
});

test('a lost reply closes its connection after Redis received the command', async () => {
  const socket = await open();
  network.set({ is: 'replies-lost', oneIn: 1 });
  heard = '';
  const cut = closed(socket);
  socket.write('command');
  await cut;
  network.set({ is: 'none' });
  expect(heard).toBe('command');
});
