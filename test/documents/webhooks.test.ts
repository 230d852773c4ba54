// docs/webhooks.md and the code agree on signatures and times.
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { page, root } from './markdown.ts';

const text = page('docs/webhooks.md');

test('the page has the test vectors of the code', () => {
  const documented: unknown = JSON.parse(/```json\n([\s\S]*?)```/.exec(text)?.[1] ?? '');
  expect(documented).toEqual(
    JSON.parse(readFileSync(join(root, 'packages/crypto/vectors/webhook-signatures.json'), 'utf8')),
  );
});

test('the example is signed in both schemes', () => {
  const [, head = '', body = ''] = /```\nPOST [^\n]*\n([\s\S]*?)\n\n([\s\S]*?)\n```/.exec(text) ?? [];
  const headers = Object.fromEntries(
    head.split('\n').map((line) => {
      const [name = '', value = ''] = line.split(': ');
      return [name.toLowerCase(), value];
    }),
  );
  const signed = `${headers['x-request-id']}.${headers['x-service-webhook-timestamp']}.${body}`;
  expect(headers['x-service-webhook-signature']).toBe(
    `v1,${createHmac('sha256', 'test-secret').update(signed).digest('hex')}`,
  );
  const at = new Date(Number(headers['webhook-timestamp']) * 1000);
  const standard = new Webhook('test-secret', { format: 'raw' }).sign(String(headers['webhook-id']), at, body);
  expect(headers['webhook-signature']).toBe(standard);
});

test('the schedule is the same as in docs/settings.md', () => {
  const [, seconds = ''] = /`WEBHOOK_SCHEDULE` \| `([\d,]+)`/.exec(page('docs/settings.md')) ?? [];
  const [, documented = ''] = /`WEBHOOK_JITTER`\): at once, after ([\s\S]*?)\. `Retry-After`/.exec(text) ?? [];
  const units: Record<string, number> = { s: 1, min: 60, h: 3600 };
  const delays = [...documented.matchAll(/(\d+) (s|min|h)/g)].map(([, n, unit = '']) => Number(n) * (units[unit] ?? 0));
  expect([0, ...delays].join(',')).toBe(seconds);
});
