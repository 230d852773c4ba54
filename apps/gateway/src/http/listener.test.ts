import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { stopListening } from './listener.ts';

const CALLERS = 20;
const LOOK_EVERY_MS = 5;

/** Opens this many connections, reports that, sends a request on each, and reports the number of answers. */
const PROGRAM = `
import { connect } from 'node:net';
import { writeSync } from 'node:fs';
const sockets = Array.from({ length: ${CALLERS} }, () => connect(Number(process.argv[1]), '127.0.0.1'));
await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
const answered = sockets.map((socket) => new Promise((resolve) => {
  socket.once('data', () => resolve(1)).once('error', () => resolve(0)).once('close', () => resolve(0));
}));
writeSync(1, 'connected, ');
for (const socket of sockets) socket.write('POST / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n');
const sum = (await Promise.all(answered)).reduce((one, other) => one + other, 0);
writeSync(1, sum + ' answered');
`;

test('a stopping gateway answers callers that connected while the gateway was too busy to notice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'listener-'));
  const path = join(folder, 'said');
  const server = createServer((_request, response) => response.end('answered'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const said = openSync(path, 'w');
  const callers = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, String(port)], {
    stdio: ['ignore', said, 'inherit'],
  });
  const ended = once(callers, 'close');
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  while (!readFileSync(path, 'utf8').includes('connected')) Atomics.wait(nobody, 0, 0, LOOK_EVERY_MS);
  await stopListening(server);
  await ended;
  expect(readFileSync(path, 'utf8')).toBe(`connected, ${CALLERS} answered`);
  closeSync(said);
  await rm(folder, { recursive: true });
});
