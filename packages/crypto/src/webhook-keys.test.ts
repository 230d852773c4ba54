// Contract 4, "Signatures": the signature `v1a`, checked with the public key that receivers get.
import { createHash, createPublicKey, hkdfSync, randomBytes, verify } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { WebhookKeys } from './webhook-keys.ts';

/** Verifies as a receiver does: with the listed text only. RFC 8410 gives the head of the key's DER form. */
function verifies(listed: string, content: Buffer, signature: string): boolean {
  const raw = Buffer.from(listed.replace(/^whpk_/, ''), 'base64');
  const key = createPublicKey({
    key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), raw]),
    format: 'der',
    type: 'spki',
  });
  return verify(null, content, key, Buffer.from(signature.replace(/^v1a,/, ''), 'base64'));
}

const content = (id: string, timestamp: number, body: Buffer) =>
  Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
const [older, newer] = [randomBytes(32), randomBytes(32)];

test.each([
  ['an empty body', Buffer.alloc(0)],
  ['text', Buffer.from('{"result":"naïve 東京 🚀"}')],
  ['bytes that are not UTF-8', Buffer.from([0xff, 0xfe, 0])],
  ['a body of a megabyte', Buffer.alloc(1 << 20, 'x')],
])('the signature of %s verifies with the listed key, and no changed part verifies', async (_name, body) => {
  const keys = new WebhookKeys([newer]);
  const [{ key, id } = { key: '', id: '' }] = keys.listed;
  expect(key).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
  expect(id).toBe(
    createHash('sha256')
      .update(Buffer.from(key.slice(5), 'base64'))
      .digest('hex')
      .slice(0, 16),
  );
  const made = await keys.sign('msg_1', 1716930766, body);
  expect(made).toMatch(/^v1a,[A-Za-z0-9+/]{86}==$/);
  expect(verifies(key, content('msg_1', 1716930766, body), made)).toBe(true);
  for (const changed of [
    content('msg_2', 1716930766, body),
    content('msg_1', 1716930767, body),
    content('msg_1', 1716930766, Buffer.concat([body, Buffer.of(0)])),
  ])
    expect(verifies(key, changed, made)).toBe(false);
});

test('during a rotation each key signs, the newest first', async () => {
  const before = new WebhookKeys([older]);
  const during = new WebhookKeys([newer, older]);
  expect(during.listed).toEqual([...new WebhookKeys([newer]).listed, ...before.listed]);
  const body = Buffer.from('{}');
  const signatures = (await during.sign('msg_1', 1, body)).split(' ');
  expect(signatures).toHaveLength(2);
  during.listed.forEach(({ key }, at) => {
    expect(verifies(key, content('msg_1', 1, body), signatures[at] ?? '')).toBe(true);
  });
});

test('every process derives the same keys, and no listed key reveals the secret key', () => {
  const [listed] = new WebhookKeys([older]).listed;
  expect(new WebhookKeys([Buffer.from(older)]).listed).toEqual([listed]);
  const seed = Buffer.from(hkdfSync('sha256', older, Buffer.alloc(0), 'inference-proxy webhook signature v1a', 32));
  for (const hidden of [older, seed]) expect(JSON.stringify(listed)).not.toContain(hidden.toString('base64'));
});
