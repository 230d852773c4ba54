// Contract 2, "Errors", `upstream_unavailable`: the reason that a caller reads.
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { failureText } from './failure-text.ts';

test('a failed connection is reported without the dialled address', async () => {
  // No process can connect to the broadcast address, on any machine.
  const [error] = (await once(connect(1, '255.255.255.255'), 'error').catch((thrown) => [thrown])) as [Error];
  expect(error.message).toContain('255.255.255.255');
  expect(failureText(error)).toMatch(/^no connection \(E[A-Z]+\)$/);
});

test.each([
  [{ code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 10.0.0.1:80', address: '10.0.0.1' }, 'connection refused'],
  [{ code: 'EPIPE', message: 'write EPIPE' }, 'the connection was closed'],
  [{ code: 'ETIMEDOUT', message: '' }, 'no connection (ETIMEDOUT)'],
  [{ code: 'ENOTFOUND', message: 'getaddrinfo ENOTFOUND model.internal' }, 'getaddrinfo ENOTFOUND model.internal'],
])('%j as text', (error, words) => {
  expect(failureText(error as never)).toBe(words);
});
