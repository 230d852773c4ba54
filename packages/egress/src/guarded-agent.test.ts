// Contract 4, "Allowed addresses" with real sockets: which addresses the agent dials and which sockets it keeps.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { AddressPolicy, parseNetworks } from './address-policy.ts';
import { ConnectError } from './connect-error.ts';
import { GuardedAgent, type GuardedAgentOptions } from './guarded-agent.ts';
import { nameLookup } from './name-lookup.ts';
import { type Answer, dnsServer } from './testing/dns-server.ts';

/** Limits that even a busy machine does not reach. */
const PATIENT = { headMs: 120_000, answerMs: 120_000, answerBytes: 4096 };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function agentOf(options: Partial<GuardedAgentOptions> = {}): GuardedAgent {
  const policy = new AddressPolicy(parseNetworks('127.0.0.0/8'));
  const agent = new GuardedAgent({ policy, connectTimeoutMs: 120_000, ...options });
  cleanups.push(() => agent.close());
  return agent;
}

/** Returns an agent whose real name server gives these answers. */
async function agentAsking(
  answer: (name: string, type: 'A' | 'AAAA') => Answer,
  options: Partial<GuardedAgentOptions> = {},
): Promise<GuardedAgent> {
  const server = await dnsServer(answer);
  cleanups.push(() => server.close());
  const patience = { timeout: 5000, tries: 1 };
  const lookup = nameLookup({ servers: [server.address], hostsFile: '/nonexistent', patience });
  return agentOf({ lookup, ...options });
}

/** Starts a receiver that counts its connections and answers `ok`. */
async function receiver(): Promise<{
  port: number;
  sockets: Set<Socket>;
  hosts: (string | undefined)[];
  server: Server;
}> {
  const sockets = new Set<Socket>();
  const hosts: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    hosts.push(request.headers.host);
    response.end('ok');
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets, hosts, server };
}

async function get(agent: GuardedAgent, url: string): Promise<{ status: number; address: string | undefined }> {
  const connection = agent.connection(new URL(url));
  try {
    const { status } = await connection.exchange({ method: 'GET', path: '/' }, PATIENT);
    agent.keep(connection);
    return { status, address: connection.address };
  } catch (error) {
    agent.discard(connection);
    throw error;
  }
}

const failure = async (attempt: Promise<unknown>): Promise<ConnectError> => {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof ConnectError) return error;
  throw new Error(`expected a ConnectError, got ${error}`);
};

test('a name that resolves to an allowed address is dialled at this address, and the request names the host', async () => {
  const { port, hosts } = await receiver();
  const agent = await agentAsking((_, type) => (type === 'A' ? ['127.0.0.1'] : []));
  expect(await get(agent, `http://hook.test:${port}/`)).toEqual({ status: 200, address: '127.0.0.1' });
  expect(hosts).toEqual([`hook.test:${port}`]);
});

test.each<[string, readonly string[], readonly string[], string]>([
  ['a private address', ['10.0.0.1'], [], '10.0.0.1'],
  ['one allowed and one private address', ['127.0.0.1', '192.168.1.1'], [], '192.168.1.1'],
  ['an allowed address and a unique-local address', ['127.0.0.1'], ['fd00::1'], 'fd00::1'],
  ['a mapped private address', [], ['::ffff:a00:1'], '::ffff:10.0.0.1'],
  ['the metadata address', ['169.254.169.254'], [], '169.254.169.254'],
  ['AAAA only, loopback', [], ['::1'], '::1'],
])('a name that resolves to %s is blocked, and no address is dialled', async (_name, v4, v6, address) => {
  const { port, hosts } = await receiver();
  const agent = await agentAsking((_, type) => (type === 'A' ? v4 : v6));
  const error = await failure(get(agent, `http://hook.test:${port}/`));
  expect(error).toMatchObject({
    kind: 'blocked',
    address,
    message: expect.stringMatching(/^hook\.test has an address that is [a-z-]+: .*WEBHOOK_ALLOWED_NETWORKS/),
  });
  expect(hosts).toEqual([]);
});

test.each(['10.0.0.1', '[::1]', '[::ffff:10.0.0.1]', '169.254.169.254', '0.0.0.0'])(
  'the literal %s is blocked',
  async (host) => {
    expect(await failure(get(agentOf(), `http://${host}:8080/`))).toMatchObject({ kind: 'blocked' });
    expect(await failure(get(agentOf(), `https://${host}:8443/`))).toMatchObject({ kind: 'blocked' });
  },
);

test('rebinding: a name whose address turns private is blocked at the next connection; the open socket is still used', async () => {
  const { port, sockets } = await receiver();
  let asked = 0;
  const agent = await agentAsking((_, type) => {
    if (type === 'AAAA') return [];
    asked += 1;
    return asked === 1 ? ['127.0.0.1'] : ['10.0.0.1'];
  });
  const url = `http://hook.test:${port}/`;
  expect(await get(agent, url)).toMatchObject({ status: 200 });
  expect(await get(agent, url)).toEqual({ status: 200, address: '127.0.0.1' });
  expect(asked).toBe(1);
  const [socket] = sockets;
  const closed = new Promise((resolve) => socket?.on('close', resolve));
  socket?.destroy();
  await closed;
  expect(await failure(get(agent, url))).toMatchObject({ kind: 'blocked', address: '10.0.0.1' });
});

test('a name that does not exist fails with `dns`', async () => {
  const agent = await agentAsking(() => 'NXDOMAIN');
  expect(await failure(get(agent, 'http://missing.test/'))).toMatchObject({
    kind: 'dns',
    message: 'missing.test does not resolve: ENOTFOUND',
  });
});

test('a name whose server never answers fails within the connection timeout, lookup included', async () => {
  const agent = await agentAsking(() => 'silence', { connectTimeoutMs: 900 });
  expect(await failure(get(agent, 'http://silent.test/'))).toMatchObject({
    kind: 'timeout',
    message: 'no connection within 900 ms (name lookup)',
  });
});

test('a port without a receiver fails with `refused` and the address', async () => {
  const { port: standing } = await receiver();
  // No process listens at the client's end of a connection, and no other process can.
  const near = connect(standing, '127.0.0.1');
  cleanups.push(() => near.destroy());
  await once(near, 'connect');
  expect(await failure(get(agentOf(), `http://127.0.0.1:${near.localPort}/`))).toMatchObject({
    kind: 'refused',
    address: '127.0.0.1',
  });
});

test('if an address refuses, the next address is tried', async () => {
  const { port } = await receiver();
  const agent = await agentAsking((_, type) => (type === 'A' ? ['127.0.0.9', '127.0.0.1'] : []));
  expect(await get(agent, `http://hook.test:${port}/`)).toEqual({ status: 200, address: '127.0.0.1' });
});

test('sequential exchanges share a socket; concurrent exchanges have one socket each', async () => {
  const { port, sockets } = await receiver();
  const agent = agentOf();
  const url = `http://127.0.0.1:${port}/`;
  for (let i = 0; i < 5; i += 1) await get(agent, url);
  expect(sockets.size).toBe(1);
  await Promise.all(Array.from({ length: 4 }, () => get(agent, url)));
  expect(sockets.size).toBe(4);
  expect(agent.idle).toBe(4);
});

test('the number of idle sockets stays within its bound, for any number of receivers', async () => {
  const receivers = await Promise.all(Array.from({ length: 6 }, () => receiver()));
  const agent = agentOf({ maxIdle: 2 });
  for (const { port } of receivers) await get(agent, `http://127.0.0.1:${port}/`);
  expect(agent.idle).toBe(2);
});

test('an idle socket that its receiver closes is removed', async () => {
  const { port, sockets } = await receiver();
  const agent = agentOf();
  await get(agent, `http://127.0.0.1:${port}/`);
  for (const socket of sockets) socket.end();
  while (agent.idle > 0) await new Promise((resolve) => setImmediate(resolve));
  expect(await get(agent, `http://127.0.0.1:${port}/`)).toMatchObject({ status: 200 });
});

test('closing the agent closes idle connections and aborts exchanges in progress', async () => {
  const { port, sockets, server } = await receiver();
  const agent = agentOf();
  await get(agent, `http://127.0.0.1:${port}/`);
  server.removeAllListeners('request');
  const asked = once(server, 'request');
  const open = get(agent, `http://127.0.0.1:${port}/`);
  const outcome = expect(open).rejects.toThrow();
  await asked;
  const gone = Promise.all([...sockets].map((socket) => once(socket, 'close')));
  agent.close();
  await outcome;
  await gone;
  expect(agent.idle).toBe(0);
});
