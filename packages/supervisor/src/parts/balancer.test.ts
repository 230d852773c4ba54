// `--scale gateway=2`: the requirements for one port in front of several servers.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { refusing } from '@inference-proxy/test/receiver';
import { afterEach, expect, test } from '@jest/globals';
import { Balancer } from './balancer.ts';

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

const HOST = '127.0.0.1';

async function server(serve: (socket: Socket) => void): Promise<{ port: number; server: Server }> {
  const one = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    serve(socket);
  }).listen(0, HOST);
  cleanups.push(() => one.close());
  await once(one, 'listening');
  return { port: (one.address() as { port: number }).port, server: one };
}

/** Starts a server that sends its name and ends the connection. */
const named = (name: string) => server((socket) => socket.end(name));

async function balancer(): Promise<{ balancer: Balancer; open: () => Socket }> {
  const one = new Balancer();
  const port = await one.listen(HOST, 0);
  cleanups.push(() => one.close());
  return {
    balancer: one,
    open() {
      const socket = connect({ host: HOST, port, allowHalfOpen: true }).on('error', () => {});
      cleanups.push(() => socket.destroy());
      return socket;
    },
  };
}

test('connections go to the added servers in turn', async () => {
  const { balancer: one, open } = await balancer();
  for (const name of ['a', 'b', 'c']) one.add(name, (await named(name)).port);
  const said: string[] = [];
  for (let k = 0; k < 6; k++) said.push(await text(open()));
  expect(said.join('')).toBe('abcabc');
  one.remove('b');
  for (let k = 0; k < 4; k++) said.push(await text(open()));
  expect(said.slice(6).join('')).toBe('acac');
});

test('bytes pass in both directions, and a caller that has ended its side still gets the answer', async () => {
  const { balancer: one, open } = await balancer();
  const { port } = await server(async (socket) => {
    socket.write('hello');
    socket.end(`, ${await text(socket)}`);
  });
  one.add('a', port);
  const socket = open();
  const [first] = (await once(socket, 'data')) as [Buffer];
  expect(first.toString()).toBe('hello');
  socket.end('Ada');
  expect(await text(socket)).toBe(', Ada');
});

test('a server that accepts no connections is skipped before any byte is sent', async () => {
  const { balancer: one, open } = await balancer();
  const gone = await refusing();
  cleanups.push(() => gone.close());
  one.add('gone', gone.port);
  one.add('a', (await named('a')).port);
  for (let k = 0; k < 4; k++) expect(await text(open())).toBe('a');
});

test('a connection waits for the next server if no server is added', async () => {
  const { balancer: one, open } = await balancer();
  const socket = open();
  await once(socket, 'connect');
  one.add('a', (await named('a')).port);
  expect(await text(socket)).toBe('a');
});

test('a reset by a server resets its connection and no other connection', async () => {
  const { balancer: one, open } = await balancer();
  const taken: Socket[] = [];
  const serve = (socket: Socket): void => {
    taken.push(socket);
    socket.write('taken');
  };
  one.add('a', (await server(serve)).port);
  const [first, second] = [open(), open()];
  await Promise.all([once(first, 'data'), once(second, 'data')]);
  const closed = new Promise((resolve) => first.resume().once('close', resolve));
  taken[0]?.resetAndDestroy();
  await closed;
  taken[1]?.write('still');
  expect(String((await once(second, 'data'))[0])).toBe('still');
});

test('a server has to wait for a caller that does not read, and notices the disconnect of a caller', async () => {
  const { balancer: one, open } = await balancer();
  const full = Promise.withResolvers<number>();
  const left = Promise.withResolvers<void>();
  const block = Buffer.alloc(64 * 1024);
  const { port } = await server((socket) => {
    let written = 0;
    const timer = setInterval(() => {
      if (socket.writableNeedDrain) full.resolve(written);
    }, 500);
    const more = (): void => {
      while (!socket.destroyed && socket.write(block)) written += block.length;
    };
    socket.on('drain', more).once('close', () => {
      clearInterval(timer);
      left.resolve();
    });
    more();
  });
  one.add('a', port);
  const socket = open();
  expect(await full.promise).toBeLessThan(64 * 1024 * 1024);
  socket.resetAndDestroy();
  await left.promise;
});

test('after refuse, the balancer accepts no connections and lets open connections end', async () => {
  const { balancer: one, open } = await balancer();
  const { port } = await server((socket) => socket.once('data', () => socket.end('bye')).write('hello'));
  one.add('a', port);
  const socket = open();
  await once(socket, 'data');
  one.refuse();
  const [refused] = (await once(open().removeAllListeners('error'), 'error')) as [NodeJS.ErrnoException];
  expect(refused.code).toBe('ECONNREFUSED');
  socket.write('x');
  expect(await text(socket)).toBe('bye');
});
