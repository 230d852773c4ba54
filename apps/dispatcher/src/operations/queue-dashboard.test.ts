// Contract 6: the queue dashboard on the operations port, protected by a token.
import { OperationsPort } from '@inference-proxy/platform';
import { request } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DeliveringStore } from '../testing/delivering-store.ts';
import { DASHBOARD_PATH, type QueueDashboard, queueDashboard } from './queue-dashboard.ts';

const TOKEN = 'a-token-of-some-length';

let store: DeliveringStore;
let dashboard: QueueDashboard;
const operations = new OperationsPort();
let port: number;
beforeAll(async () => {
  store = await DeliveringStore.open();
  dashboard = await queueDashboard(store.client, TOKEN);
  operations.mount(DASHBOARD_PATH, dashboard.handle);
  port = await operations.listen('127.0.0.1', 0);
});
afterAll(async () => {
  await operations.close();
  await dashboard.close();
  await store.close();
});

const get = (path: string, authorization?: string) =>
  request(port, path, { method: 'GET', ...(authorization !== undefined && { headers: { authorization } }) });
const basic = (password: string) => `Basic ${Buffer.from(`anybody:${password}`).toString('base64')}`;

test.each([
  ['no token', undefined],
  ['another token', 'Bearer another-token-of-length'],
  ['an empty password', basic('')],
  ['another password', basic('wrong')],
  ['another scheme', `Digest ${TOKEN}`],
])('a request with %s gets 401 and no content', async (_name, authorization) => {
  for (const path of ['/queues', '/queues/', '/queues/api/queues', '/queues/static/x.js']) {
    const answer = await get(path, authorization);
    expect([answer.status, answer.text]).toEqual([401, '']);
    expect(answer.headers['www-authenticate']).toContain('Basic');
  }
});

test('a request with the token gets the page and the waiting jobs', async () => {
  const runId = await store.runTo('http://127.0.0.1:9/');
  const page = await get('/queues/', basic(TOKEN));
  expect(page.status).toBe(200);
  expect(page.headers['content-type']).toContain('text/html');
  const asset = /(static\/js\/[^"]+\.js|static\/[^"]+\.js)/.exec(page.text)?.[1] ?? '';
  expect((await get(`/queues/${asset}`, basic(TOKEN))).status).toBe(200);
  const { queues } = JSON.parse((await get('/queues/api/queues?activeQueue=deliveries', basic(TOKEN))).text);
  expect(queues.map(({ name }: { name: string }) => name)).toEqual(['deliveries', 'deliveries-backlog']);
  expect(JSON.stringify(queues)).toContain(runId);
  expect((await get('/queues/api/queues', `Bearer ${TOKEN}`)).status).toBe(200);
});

test('the dashboard rejects changes', async () => {
  const retry = await request(port, '/queues/api/queues/deliveries/clean/completed', {
    method: 'PUT',
    headers: { authorization: basic(TOKEN) },
  });
  expect(retry.status).toBeGreaterThanOrEqual(400);
});
