import { expect, test } from '@jest/globals';
import { serverTarget } from './server-target.ts';

test.each([
  ['/v4/acme/site', '/', '/'],
  ['/v4/acme/site/', '/', '/'],
  ['/v4/acme/site?', '/?', '/'],
  ['/v4/acme/site?q=1', '/?q=1', '/'],
  ['/v4/acme/site/a/b', '/a/b', 'a/b'],
  ['/v4/acme/site//a/../b/', '//a/../b/', '/a/../b/'],
  ['/v4/acme/site/a%2Fb/%F0%9F%A6%8A?x=%20&x=+&y', '/a%2Fb/%F0%9F%A6%8A?x=%20&x=+&y', 'a%2Fb/%F0%9F%A6%8A'],
  ['/v4/acme/site/a?b?c', '/a?b?c', 'a'],
  ['/v4/acme/site/\xe9', '/\xe9', '%e9'],
])('%s reaches the server as %s', (url, target, name) => {
  expect(serverTarget(url)).toEqual({ prefix: '/v4/acme/site', target, name });
});

test.each([
  ['async=true', '/a'],
  ['async=true&x=1&onDisconnect=5&webhookEndpoint=https%3A%2F%2Fhook.example&y=2', '/a?x=1&y=2'],
  ['webhook%45ndpoint=x&ids=true&events=full', '/a?ids=true&events=full'],
  ['Async=true&asynchronous=1&%zz=1', '/a?Async=true&asynchronous=1&%zz=1'],
])('of the query %s, only the gateway’s parameters are withheld', (query, target) => {
  expect(serverTarget(`/v4/acme/site/a?${query}`).target).toBe(target);
});

test('the function name of a run is bounded, and the target for the server is not', () => {
  const path = `/${'x'.repeat(5000)}`;
  const { name, target } = serverTarget(`/v4/acme/site${path}`);
  expect(name).toBe('x'.repeat(256));
  expect(target).toBe(path);
});
