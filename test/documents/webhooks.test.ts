// docs/webhooks.md and the code agree on signatures and times.
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { page, root } from './markdown.ts';

const text = page('docs/webhooks.md');

test('the page has the test vectors of the code', () => {
  const documented: unknown = JSON.parse(/```json\n(\{\s*"scheme"[\s\S]*?)```/.exec(text)?.[1] ?? '');
  expect(documented).toEqual(
    JSON.parse(readFileSync(join(root, 'packages/crypto/vectors/webhook-signatures.json'), 'utf8')),
  );
});

const exampleDelivery = () => {
  const [, head = '', body = ''] = /```\nPOST [^\n]*\n([\s\S]*?)\n\n([\s\S]*?)\n```/.exec(text) ?? [];
  const headers = Object.fromEntries(
    head.split('\n').map((line) => {
      const [name = '', value = ''] = line.split(': ');
      return [name.toLowerCase(), value];
    }),
  );
  return { headers, body };
};

test('the example is signed in both schemes with a secret', () => {
  const { headers, body } = exampleDelivery();
  const signed = `${headers['x-request-id']}.${headers['x-service-webhook-timestamp']}.${body}`;
  expect(headers['x-service-webhook-signature']).toBe(
    `v1,${createHmac('sha256', 'test-secret').update(signed).digest('hex')}`,
  );
  const at = new Date(Number(headers['webhook-timestamp']) * 1000);
  const standard = new Webhook('test-secret', { format: 'raw' }).sign(String(headers['webhook-id']), at, body);
  expect(headers['webhook-signature']?.split(' ')[0]).toBe(standard);
});

/** Resolves with the example of a receiver on the page. */
async function exampleReceiver() {
  const [, code = ''] = /```js\n(import \{ createPublicKey[\s\S]*?)```/.exec(text) ?? [];
  const file = join(await mkdtemp(join(tmpdir(), 'receiver-')), 'receiver.mjs');
  await writeFile(file, code);
  return (await import(file)) as { isSigned(keys: unknown, headers: unknown, body: Buffer): boolean };
}

test('the code of the page verifies the example with the public key of the page, and no changed body', async () => {
  const { headers, body } = exampleDelivery();
  const { keys } = JSON.parse(/^\{"keys":.*$/m.exec(text)?.[0] ?? '') as { keys: unknown };
  const { isSigned } = await exampleReceiver();
  expect(isSigned(keys, headers, Buffer.from(body))).toBe(true);
  expect(isSigned(keys, headers, Buffer.from(`${body} `))).toBe(false);
});

test('the example of the contract is signed with its secret and with its public key', async () => {
  const contract = page('docs/contract.md');
  const [, head = '', body = ''] = /```http\nPOST \/hook [^\n]*\n([\s\S]*?)\n\n([\s\S]*?)\n```/.exec(contract) ?? [];
  const [, id = '', timestamp = '', sent = ''] =
    /webhook-id: (.*)\nwebhook-timestamp: (.*)\nwebhook-signature: (.*)/.exec(head) ?? [];
  const at = new Date(Number(timestamp) * 1000);
  expect(sent.split(' ')[0]).toBe(new Webhook('test-secret', { format: 'raw' }).sign(id, at, body));
  const [key] = /whpk_[A-Za-z0-9+/=]+/.exec(contract) ?? [];
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': sent };
  expect((await exampleReceiver()).isSigned([{ key }], headers, Buffer.from(body))).toBe(true);
});

test('the schedule is the same as in docs/settings.md', () => {
  const [, seconds = ''] = /`WEBHOOK_SCHEDULE` \| `([\d,]+)`/.exec(page('docs/settings.md')) ?? [];
  const [, documented = ''] = /`WEBHOOK_JITTER`\): at once, after ([\s\S]*?)\. `Retry-After`/.exec(text) ?? [];
  const units: Record<string, number> = { s: 1, min: 60, h: 3600 };
  const delays = [...documented.matchAll(/(\d+) (s|min|h)/g)].map(([, n, unit = '']) => Number(n) * (units[unit] ?? 0));
  expect([0, ...delays].join(',')).toBe(seconds);
});
