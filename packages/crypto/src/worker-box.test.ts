// Contract 7, "Secrets": a box for a worker opens only with the worker's private key, and only for its app.
import { expect, test } from '@jest/globals';
import { UnsealError } from './sealed-box.ts';
import { sealForWorker, WorkerKeys } from './worker-box.ts';

const of = { project: 'demo', app: 'hello', workerId: 'w1' };
const secret = Buffer.from('a-value-that-must-not-be-seen');

test('the worker opens a box that was sealed for its public key', () => {
  const keys = new WorkerKeys();
  expect(keys.open(sealForWorker(keys.publicKey, secret, of), of)).toEqual(secret);
});

test('no other worker opens the box', () => {
  const sealed = sealForWorker(new WorkerKeys().publicKey, secret, of);
  expect(() => new WorkerKeys().open(sealed, of)).toThrow(UnsealError);
});

test.each([
  ['project', { ...of, project: 'other' }],
  ['app', { ...of, app: 'other' }],
  ['worker', { ...of, workerId: 'w2' }],
])('a box does not open for another %s', (_, other) => {
  const keys = new WorkerKeys();
  expect(() => keys.open(sealForWorker(keys.publicKey, secret, of), other)).toThrow(UnsealError);
});

test('two boxes of one secret differ, and neither contains the secret', () => {
  const keys = new WorkerKeys();
  const boxes = [1, 2].map(() => sealForWorker(keys.publicKey, secret, of));
  expect(new Set(boxes).size).toBe(2);
  for (const box of boxes) expect(Buffer.from(box, 'base64').includes(secret)).toBe(false);
});

test('a box with any changed byte does not open', () => {
  const keys = new WorkerKeys();
  const box = Buffer.from(sealForWorker(keys.publicKey, secret, of), 'base64');
  for (const at of box.keys()) {
    const altered = Buffer.from(box);
    altered[at] = (altered[at] as number) ^ 1;
    expect(() => keys.open(altered.toString('base64'), of)).toThrow(UnsealError);
  }
});

test.each(['', 'short', Buffer.alloc(32).toString('base64')])('the public key "%s" is refused', (key) => {
  expect(() => sealForWorker(key, secret, of)).toThrow();
});
