import { expect, test } from '@jest/globals';
import { Query } from '../http/request-head.ts';
import { streamFormOf } from './stream-form.ts';

test.each([
  ['', 'plain'],
  ['async=false&x=ids', 'plain'],
  ['ids=false', 'plain'],
  ['ids=true', 'ids'],
  ['webhookEndpoint=http%3A%2F%2Fx%2F%3Fids%3Dmaybe&ids=true', 'ids'],
  ['events=full', 'rich'],
  ['ids=true&events=full', 'rich'],
])('%j asks for the %s form', (query, form) => {
  expect(streamFormOf(new Query(query))).toBe(form);
});

test.each(['ids=', 'ids=1', 'ids=TRUE', 'ids=true&ids=true', 'events=', 'events=all', 'events=full&events=full'])(
  '%j is rejected',
  (query) => {
    expect(() => streamFormOf(new Query(query))).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  },
);
