import { expect, test } from '@jest/globals';
import { Query } from '../http/request-head.ts';
import { checkQueryNames } from './query-names.ts';

test.each([
  ['webhookendpoint=https://a.example', 'webhookEndpoint'],
  ['webhookEndpont=x', 'webhookEndpoint'],
  ['webhookEndpiont=x', 'webhookEndpoint'],
  ['webhookEndpoints=x', 'webhookEndpoint'],
  ['webhook%45ndpoin=x', 'webhookEndpoint'],
  ['Async=true', 'async'],
  ['asinc=true', 'async'],
  ['asyc=true', 'async'],
  ['aysnc=true', 'async'],
  ['onDisconect=continue', 'onDisconnect'],
  ['ondisconnect=continue', 'onDisconnect'],
  ['event=full', 'events'],
  ['lastEventID=1', 'lastEventId'],
  ['prioritie=1', 'priority'],
  ['affter=1', 'after'],
  ['x=1&async=true&priorty', 'priority'],
])('%s is rejected, and the message names %s', (query, meant) => {
  expect(() => checkQueryNames(new Query(query))).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(`\`${meant}\``) }),
  );
});

test.each([
  '',
  'webhookEndpoint=https://a.example&async=true&onDisconnect=cancel&ids=true&events=full&after=1&lastEventId=1&priority=1',
  'utm_source=mail&api-version=2024-10-21&trace=1',
  'id=1&idss=true&Ids=true&asy=1',
  'disconnect=1&endpoint=x&webhook=x&lastId=1',
  '%E6%9D%B1%E4%BA%AC=1&=&&',
  `${'x'.repeat(8000)}=1`,
])('%j is accepted', (query) => {
  expect(() => checkQueryNames(new Query(query))).not.toThrow();
});
