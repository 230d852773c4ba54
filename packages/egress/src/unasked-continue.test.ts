// RFC 9110 §15.2 with real sockets: a receiver may send `100 Continue` although the request did not ask for it.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { AddressPolicy, parseNetworks } from './address-policy.ts';
import { GuardedAgent } from './guarded-agent.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Starts a receiver that answers every request with these parts, one packet for each part. Counts its connections. */
async function saying(...parts: string[]): Promise<{ url: URL; connections: () => number }> {
  let connections = 0;
  const answer = async (socket: Socket): Promise<void> => {
    for (const part of parts) {
      socket.write(part);
      await turn();
    }
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket.setNoDelay(true));
    socket.on('error', () => {}).on('data', () => void answer(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
    connections: () => connections,
  };
}

function agent(): GuardedAgent {
  const made = new GuardedAgent({ policy: new AddressPolicy(parseNetworks('127.0.0.0/8')), connectTimeoutMs: 120_000 });
  cleanups.push(() => made.close());
  return made;
}

async function get(from: GuardedAgent, url: URL): Promise<string> {
  const connection = from.connection(url);
  const limits = { headMs: 120_000, answerMs: 120_000, answerBytes: 4096 };
  const { status, start } = await connection.exchange({ method: 'GET', path: '/' }, limits);
  const text = `${status} ${start}`;
  from.keep(connection);
  return text;
}

test.each<[string, string[]]>([
  ['with the answer in one packet', [CONTINUE + OK]],
  ['before the packet of the answer', [CONTINUE, OK]],
  ['three times', [CONTINUE, CONTINUE + CONTINUE, OK]],
  ['with headers', ['HTTP/1.1 100 Continue\r\nX-A: 1\r\nDate: now\r\n\r\n', OK]],
  ['without a reason', ['HTTP/1.1 100\r\n\r\n', OK]],
  ['in HTTP/1.0', ['HTTP/1.0 100 Continue\r\n\r\n', OK]],
  ['byte by byte', [...(CONTINUE + OK)]],
  ['as a 103 with hints', [`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`]],
  ['not at all', [...OK]],
])('the answer of a receiver that sends an unrequested 100 %s is read', async (_how, parts) => {
  const { url } = await saying(...parts);
  expect(await get(agent(), url)).toBe('200 ok');
});

test('a reused connection removes the 100 before each answer', async () => {
  const { url, connections } = await saying(CONTINUE, OK);
  const from = agent();
  for (const _ of [1, 2, 3]) expect(await get(from, url)).toBe('200 ok');
  expect(connections()).toBe(1);
});

test('the text of a 100 in the body of an answer stays in the body', async () => {
  const { url } = await saying(`HTTP/1.1 200 OK\r\nContent-Length: ${CONTINUE.length}\r\n\r\n`, CONTINUE);
  expect(await get(agent(), url)).toBe(`200 ${CONTINUE}`);
});

test('a 100 with an endless head is not kept in memory', async () => {
  const { url } = await saying(
    'HTTP/1.1 100 Continue\r\n',
    ...Array.from({ length: 40 }, () => `X-A: ${'a'.repeat(1000)}\r\n`),
  );
  await expect(get(agent(), url)).rejects.toThrow();
});
