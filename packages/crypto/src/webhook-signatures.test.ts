// Contract 4, "Signatures": both signatures against the published vectors and an independent verifier.
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { serviceSignature, standardSignature } from './webhook-signatures.ts';

interface Vector {
  readonly name: string;
  readonly secret: string;
  readonly request_id: string;
  readonly timestamp: string;
  readonly body: string;
  readonly signature: string;
}
const { cases } = JSON.parse(readFileSync(new URL('../vectors/webhook-signatures.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Vector[];
};

test.each(cases)('the service signature of the vector "$name" is the published one', (vector) => {
  const { secret, request_id, timestamp, body, signature } = vector;
  expect(serviceSignature(Buffer.from(secret), request_id, Number(timestamp), Buffer.from(body))).toBe(signature);
});

test('a header that Node reads as latin1 is the key with the bytes that the caller sent', () => {
  const sent = Buffer.from('пароль-🔑');
  const asNodeGivesIt = sent.toString('latin1');
  const body = Buffer.from('{"result":1}');
  expect(serviceSignature(Buffer.from(asNodeGivesIt, 'latin1'), 'req-3', 1716930768, body)).toBe(
    'v1,f83c8dca147b6496a411147413fa3e3f151561a46d8bf8904601af1e3885b1d8',
  );
});

const now = Math.floor(Date.now() / 1000);
const verify = (verifier: Webhook, body: Buffer, signature: string) =>
  verifier.verify(body, { 'webhook-id': 'dlv_1', 'webhook-timestamp': String(now), 'webhook-signature': signature });

test.each([
  ['24 bytes', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
  ['padding', 'whsec_aGVsbG8gd29ybGQ='],
  ['64 bytes', `whsec_${Buffer.alloc(64, 7).toString('base64')}`],
])('the signature of a whsec_ secret (%s) verifies with the standardwebhooks package', (_name, secret) => {
  const body = Buffer.from('{"result":"naïve 東京 🚀 "}');
  const signature = standardSignature(Buffer.from(secret), 'dlv_1', now, body);
  expect(verify(new Webhook(secret), body, signature)).toEqual({ result: 'naïve 東京 🚀 ' });
});

test.each([
  ['any text', 'test-secret'],
  ['one byte', 'k'],
  ['2,000 characters', 'x'.repeat(2000)],
  ['a comma and a dot', 'a,b.c'],
  ['whsec_ without padding', 'whsec_aGVsbG8gd29ybGQ'],
  ['whsec_ and a text that is not base64', 'whsec_no!base64'],
  ['whsec_ in the URL alphabet', 'whsec_-_-_'],
  ['whsec_ and nothing', 'whsec_'],
  ['other case', 'WHSEC_aGVsbG8='],
])('the bytes of a secret (%s) are the key', (_name, secret) => {
  const body = Buffer.from('{}');
  const signature = standardSignature(Buffer.from(secret), 'dlv_1', now, body);
  expect(verify(new Webhook(Buffer.from(secret), { format: 'raw' }), body, signature)).toEqual({});
});

test('a secret and a body that are not UTF-8 are signed without a change', () => {
  const secret = Buffer.from([0xff, 0x00, 0x80]);
  const body = Buffer.from([0x7b, 0xed, 0xa0, 0x80, 0x7d]);
  const content = Buffer.concat([Buffer.from(`dlv_1.${now}.`), body]);
  const expected = createHmac('sha256', secret).update(content);
  expect(standardSignature(secret, 'dlv_1', now, body)).toBe(`v1,${expected.digest('base64')}`);
});

test.each([
  ['another body', 'dlv_1', now, '{"result":2}'],
  ['another id', 'dlv_2', now, '{"result":1}'],
  ['another time', 'dlv_1', now - 1, '{"result":1}'],
])('a signature does not hold for %s', (_name, id, timestamp, body) => {
  const secret = Buffer.from('whsec_aGVsbG8gd29ybGQ=');
  const signature = standardSignature(secret, id, timestamp, Buffer.from(body));
  expect(() => verify(new Webhook(secret.toString()), Buffer.from('{"result":1}'), signature)).toThrow(
    'No matching signature',
  );
});
