// Contract 1, "Authentication": a token whose key must be fetched delays only its own call, and no part of the call is lost.
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { JwtService } from '@nestjs/jwt';
import { GatewayUnderTest, PROJECT } from '../../test/gateway-under-test.ts';

const CALL = `/v4/${PROJECT}/chat/run`;

/** An identity provider that answers when the test decides, with a new key each time. */
const questions: { answer(): void; token: string }[] = [];
const provider = createServer((_, response: ServerResponse) => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const claims = { project_id: PROJECT };
  const token = new JwtService({}).sign(claims, { privateKey, algorithm: 'ES256', expiresIn: 3600 });
  questions.push({
    token,
    answer: () => response.end(JSON.stringify({ keys: [publicKey.export({ format: 'jwk' })] })),
  });
  provider.emit('question');
});

let gateway: GatewayUnderTest;
beforeAll(async () => {
  await once(provider.listen(0, '127.0.0.1'), 'listening');
  const { port } = provider.address() as AddressInfo;
  gateway = await GatewayUnderTest.start({ JWT_SECRET: '', JWT_JWKS_URL: `http://127.0.0.1:${port}/` });
});
afterAll(async () => {
  await gateway.stop();
  provider.close();
  provider.closeAllConnections();
});

test('the body of a waiting call is kept, and its caller may close its side meanwhile', async () => {
  const asked = once(provider, 'question');
  // ES256 makes the gateway fetch the set. No key has made this signature.
  const unknown = new JwtService({}).sign(
    { project_id: PROJECT },
    { privateKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, algorithm: 'ES256', expiresIn: 3600 },
  );
  const strange = gateway.call({ headers: { authorization: `Bearer ${unknown}` } });
  await asked;
  const [question] = questions;
  if (question === undefined) throw new Error('the gateway did not fetch the key set');
  const head = `POST ${CALL} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${question.token}\r\ncontent-type: application/json\r\n`;
  const whole = `${head}content-length: 15\r\n\r\n{"text":"half"}`;
  const halfClosed = gateway.socket();
  let text = '';
  halfClosed.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const closed = once(halfClosed, 'close');
  halfClosed.end(whole);
  const patient = gateway.call({ body: '{"text":"kept"}', headers: { authorization: `Bearer ${question.token}` } });
  // When the gateway has answered the last request, it has read all of them.
  await gateway.get('/healthz');
  question.answer();

  const runs = [await gateway.worker.next(), await gateway.worker.next()];
  expect(runs.map(({ params }) => params).sort()).toEqual(['{"text":"half"}', '{"text":"kept"}']);
  for (const run of runs) await run.returns(run.params);
  expect((await patient).status).toBe(200);
  await closed;
  expect(text).toContain('"result":{"text":"half"}');
  expect(errorOf(await strange).code).toBe('unauthorized');
  expect(questions).toHaveLength(1);
});
