// Contract 4, "Signatures": a sealed webhook secret opens only for its delivery and with its key.
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { parseSecretKeys, SealedBox, UnsealError } from './sealed-box.ts';

const keyText = () => randomBytes(32).toString('base64');
const run = {
  project: 'demo',
  app: 'hello',
  runId: '0199f0a0-0000-7000-8000-000000000001',
  url: 'https://receiver.test/hook?a=1',
};

/** Seals in the format of version 1. */
function boxOfVersion1(key: Buffer, secret: Buffer, runId: string): string {
  const id = createHash('sha256').update('sealed-box key id\0').update(key).digest().subarray(0, 4);
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.concat([Buffer.of(1), id, Buffer.from(runId)]));
  const text = Buffer.concat([cipher.update(secret), cipher.final()]);
  return Buffer.concat([Buffer.of(1), id, nonce, cipher.getAuthTag(), text]).toString('base64');
}

test.each([
  ['one byte', Buffer.from('k')],
  ['nothing', Buffer.alloc(0)],
  ['2,000 characters', Buffer.alloc(2000, 'x')],
  ['raw bytes', Buffer.from([0, 255, 128, 13, 10])],
])('open returns the sealed secret (%s)', (_name, secret) => {
  const box = new SealedBox(parseSecretKeys(keyText()));
  expect(box.open(box.seal(secret, run), run)).toEqual(secret);
});

test('each seal of a secret gives another text, and no text contains the secret', () => {
  const box = new SealedBox([randomBytes(32)]);
  const secret = Buffer.from('a-secret-that-must-not-be-seen');
  const sealed = new Set(Array.from({ length: 1000 }, () => box.seal(secret, run)));
  expect(sealed.size).toBe(1000);
  for (const text of sealed) expect(Buffer.from(text, 'base64').includes(secret)).toBe(false);
});

test('after a rotation the new key seals, and the old key still opens its boxes', () => {
  const [older, newer] = [keyText(), keyText()];
  const before = new SealedBox(parseSecretKeys(older));
  const rotated = new SealedBox(parseSecretKeys(`${newer}, ${older}`));
  const secret = Buffer.from('s3cr3t');
  expect(rotated.open(before.seal(secret, run), run)).toEqual(secret);
  expect(new SealedBox(parseSecretKeys(newer)).open(rotated.seal(secret, run), run)).toEqual(secret);
  expect(() => before.open(rotated.seal(secret, run), run)).toThrow('a key that is not among SECRETS_KEY');
});

test.each([
  ['another run', { runId: run.runId.replace(/1$/, '2') }],
  ['another URL', { url: 'https://attacker.test/hook?a=1' }],
  ['the same URL with another query', { url: 'https://receiver.test/hook?a=2' }],
  ['another app', { app: 'hell' }],
  ['another project', { project: 'other' }],
  ['an app and a run that form the same text when joined', { app: 'hello0', runId: run.runId.slice(1) }],
])('a box in the record of a delivery with %s does not open, with any key', (_name, other) => {
  const box = new SealedBox([randomBytes(32)]);
  const sealed = box.seal(Buffer.from('s'), run);
  expect(() => box.open(sealed, { ...run, ...other })).toThrow(expect.objectContaining({ altered: true }));
});

test('a box of version 1, which is bound to its run only, opens for that run', () => {
  const key = Buffer.alloc(32, 7);
  const box = new SealedBox([key]);
  expect(box.open(boxOfVersion1(key, Buffer.from('s3cr3t'), run.runId), run).toString()).toBe('s3cr3t');
  const { runId } = run;
  expect(() =>
    box.open(boxOfVersion1(key, Buffer.from('s'), runId), { ...run, runId: runId.replace(/1$/, '2') }),
  ).toThrow(UnsealError);
});

test('a box whose key is missing is reported as not altered, because the key may come back', () => {
  const sealed = new SealedBox([randomBytes(32)]).seal(Buffer.from('s'), run);
  expect(() => new SealedBox([randomBytes(32)]).open(sealed, run)).toThrow(expect.objectContaining({ altered: false }));
});

test('a box with any one byte altered, cut or added does not open', () => {
  const box = new SealedBox([randomBytes(32)]);
  const sealed = Buffer.from(box.seal(Buffer.from('secret'), run), 'base64');
  for (let at = 0; at < sealed.length; at += 1) {
    const altered = Buffer.from(sealed);
    altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
    expect(() => box.open(altered.toString('base64'), run)).toThrow(UnsealError);
    expect(() => box.open(sealed.subarray(0, at).toString('base64'), run)).toThrow(UnsealError);
  }
  expect(() => box.open(Buffer.concat([sealed, Buffer.of(0)]).toString('base64'), run)).toThrow(UnsealError);
});

test.each([
  ['empty', ''],
  ['too short', randomBytes(31).toString('base64')],
  ['too long', randomBytes(33).toString('base64')],
  ['hexadecimal', randomBytes(32).toString('hex')],
  ['empty in second place', `${keyText()},`],
  ['not base64', '*'.repeat(44)],
])('a key list with a key that is %s is rejected, and the error does not show the key', (_name, text) => {
  expect(() => parseSecretKeys(text)).toThrow(/^key \d must be the base64 of 32 bytes$/);
});

test('a list that repeats a key is rejected', () => {
  const key = keyText();
  expect(() => parseSecretKeys(`${key},${key}`)).toThrow('the list contains the same key twice');
});

test('a secret of an app opens only under its name and for its app', () => {
  const box = new SealedBox([randomBytes(32)]);
  const of = { project: 'demo', app: 'hello', name: 'API_KEY' };
  const sealed = box.seal(Buffer.from('s3cr3t'), of);
  expect(box.open(sealed, of).toString()).toBe('s3cr3t');
  for (const other of [{ ...of, name: 'OTHER' }, { ...of, app: 'other' }, { ...of, project: 'other' }, run])
    expect(() => box.open(sealed, other)).toThrow(UnsealError);
  expect(() => box.open(box.seal(Buffer.from('s3cr3t'), run), of)).toThrow(UnsealError);
});
