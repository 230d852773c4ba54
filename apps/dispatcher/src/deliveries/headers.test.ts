// Contract 4, "Signatures": the headers of a delivery, checked by an independent verifier.
import { randomBytes } from 'node:crypto';
import { SealedBox, UnsealError, WebhookKeys } from '@inference-proxy/crypto';
import type { DeliveryTask } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { deliveryHeaders as headersOf, shownHeaders } from './headers.ts';

const box = new SealedBox([randomBytes(32)]);
const keys = new WebhookKeys([randomBytes(32)]);
const runId = '0199f0a0-0000-7000-8000-000000000001';
const of = { project: 'demo', app: 'hello', runId, url: 'http://receiver.test/' };
const body = Buffer.from('{"result":"a.b\u2028 東京 🚀"}');
const now = Date.now();
const deliveryHeaders = (
  delivery: DeliveryTask,
  bytes: Buffer,
  opener: SealedBox,
  at: number,
  version: string,
  traceparent?: string,
) => headersOf(delivery, bytes, { box: opener, keys }, { now: at, version, traceparent });
const task = (secret?: Buffer): DeliveryTask => ({
  ...of,
  attempt: 1,
  deliveryId: 'msg_1',
  endedAt: now,
  refusals: 0,
  earlier: 0,
  ageMs: 0,
  runAttempt: 1,
  content: { body },
  token: 't',
  ...(secret && { secret: box.seal(secret, of) }),
});

test('without a secret a delivery has its ids, its times and the signature that needs no secret', async () => {
  const timestamp = String(Math.floor(now / 1000));
  expect(await deliveryHeaders(task(), body, box, now, '1.2.3')).toEqual({
    'Content-Type': 'application/json',
    'User-Agent': 'inference-proxy/1.2.3',
    'X-Request-Id': runId,
    'X-Service-Webhook-Timestamp': timestamp,
    'webhook-id': 'msg_1',
    'webhook-timestamp': timestamp,
    'webhook-signature': await keys.sign('msg_1', Number(timestamp), body),
  });
});

test.each([
  ['one byte', Buffer.from('k')],
  ['2,000 characters', Buffer.alloc(2000, 'x')],
  ['raw UTF-8 bytes', Buffer.from('пароль-🔑')],
  ['bytes that are not UTF-8', Buffer.from([0xff, 0xfe])],
  ['whsec_ with bad base64', Buffer.from('whsec_!')],
  ['a comma and a dot', Buffer.from('a,b.c')],
])('a secret of %s signs in both schemes', async (_name, secret) => {
  const headers = await deliveryHeaders(task(secret), body, box, now, '1');
  expect(headers['X-Service-Webhook-Signature']).toMatch(/^v1,[0-9a-f]{64}$/);
  expect(new Webhook(secret, { format: 'raw' }).verify(body, headers)).toEqual(JSON.parse(body.toString()));
});

test('a whsec_ secret verifies by Standard Webhooks', async () => {
  const secret = `whsec_${randomBytes(24).toString('base64')}`;
  const headers = await deliveryHeaders(task(Buffer.from(secret)), body, box, now, '1');
  expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body.toString()));
});

test('every attempt has a new timestamp and new signatures', async () => {
  const first = await deliveryHeaders(task(Buffer.from('k')), body, box, now, '1');
  const later = await deliveryHeaders(task(Buffer.from('k')), body, box, now + 5000, '1');
  expect(later['webhook-id']).toBe(first['webhook-id']);
  for (const name of [
    'webhook-timestamp',
    'webhook-signature',
    'X-Service-Webhook-Timestamp',
    'X-Service-Webhook-Signature',
  ]) {
    expect(later[name]).not.toBe(first[name]);
  }
});

test('a secret that no key opens throws instead of an unsigned delivery', async () => {
  const other = new SealedBox([randomBytes(32)]);
  await expect(deliveryHeaders(task(Buffer.from('k')), body, other, now, '1')).rejects.toThrow(UnsealError);
});

test.each([
  ['URL', { url: 'http://attacker.test/' }],
  ['app', { app: 'other' }],
  ['run', { runId: `${runId.slice(0, -1)}2` }],
])('a delivery whose %s was changed throws instead of an unsigned delivery', async (_name, changed) => {
  const altered = { ...task(Buffer.from('k')), ...changed };
  await expect(deliveryHeaders(altered, body, box, now, '1')).rejects.toThrow(UnsealError);
});

test('a traceparent is sent to the receiver', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  expect(await deliveryHeaders(task(), body, box, now, '1', traceparent)).toMatchObject({ traceparent });
});

test('the delivery log shows every header, and no value of a signature', async () => {
  const sent = await deliveryHeaders(task(Buffer.from('a secret')), body, box, now, '1.2.3');
  const shown = shownHeaders(sent);
  expect(Object.keys(shown)).toEqual(Object.keys(sent));
  expect(shown).toEqual({ ...sent, 'X-Service-Webhook-Signature': 'v1,…', 'webhook-signature': 'v1,… v1a,…' });
  const unsealed = shownHeaders(await deliveryHeaders(task(), body, box, now, '1.2.3'));
  expect(unsealed).toMatchObject({ 'webhook-signature': 'v1a,…' });
});
