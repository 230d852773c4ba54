// Contract 6: checks the dispatcher's settings.
import { readSettings } from '@inference-proxy/platform';
import { expect, test } from '@jest/globals';
import { DispatcherSettings } from './settings.ts';

const key = Buffer.alloc(32, 7).toString('base64');
const least = { REDIS_URL: 'redis://127.0.0.1:6379', SECRETS_KEY: key };
const read = (env: Record<string, string>) => readSettings(DispatcherSettings.schema, env);

test("the required settings alone give the contract's defaults", () => {
  expect(read(least)).toMatchObject({
    SECRETS_KEY: [Buffer.alloc(32, 7)],
    WEBHOOK_ALLOWED_NETWORKS: [],
    WEBHOOK_REQUIRE_HTTPS: false,
    WEBHOOK_SCHEDULE: [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400],
    WEBHOOK_JITTER: 0.2,
    WEBHOOK_CONNECT_TIMEOUT_S: 5,
    WEBHOOK_TIMEOUT_S: 15,
    WEBHOOK_HOST_CONCURRENCY: 16,
    WEBHOOK_HOST_CONCURRENCY_PROVEN: 48,
  });
});

test('the error names every wrong setting and shows no key', () => {
  const wrong = {
    SECRETS_KEY: `${key},c2hvcnQ=`,
    WEBHOOK_ALLOWED_NETWORKS: '10.0.0.1/8',
    WEBHOOK_SCHEDULE: '5,x',
    WEBHOOK_JITTER: '2',
    WEBHOOK_CONCURRENCY: '0',
  };
  const error = (() => {
    try {
      return read(wrong);
    } catch (reason) {
      return String(reason);
    }
  })();
  for (const name of ['REDIS_URL', ...Object.keys(wrong)]) expect(error).toContain(name);
  expect(error).toContain('key 2 must be the base64 of 32 bytes');
  expect(error).not.toContain(key);
  expect(error).not.toContain('c2hvcnQ');
});

test('a delay of the schedule has an upper bound', () => {
  expect(read({ ...least, WEBHOOK_SCHEDULE: '0,2592000' }).WEBHOOK_SCHEDULE).toEqual([0, 2_592_000]);
  expect(() => read({ ...least, WEBHOOK_SCHEDULE: '0,2592001' })).toThrow(
    'WEBHOOK_SCHEDULE is wrong: expected seconds such as 0,5,300, the first one 0, each at most 2592000',
  );
});

test('the dashboard requires a token of at least 16 characters', () => {
  expect(() => read({ ...least, QUEUE_DASHBOARD: 'true' })).toThrow(/OPERATIONS_TOKEN.*is needed for QUEUE_DASHBOARD/);
  expect(() => read({ ...least, QUEUE_DASHBOARD: 'true', WEBHOOK_JITTER: 'x' })).toThrow(/OPERATIONS_TOKEN is missing/);
  expect(() => read({ ...least, QUEUE_DASHBOARD: 'true', OPERATIONS_TOKEN: 'short' })).toThrow(
    'at least 16 characters',
  );
  expect(read({ ...least, QUEUE_DASHBOARD: 'true', OPERATIONS_TOKEN: 'a token of some length' })).toMatchObject({
    QUEUE_DASHBOARD: true,
  });
});
