// Contract 7, "Apps": announcements of the apps that a worker serves.
import type { AppDescription, AppState } from '@inference-proxy/contracts';
import { afterEach, expect, jest, test } from '@jest/globals';
import { Announcer } from './announce.ts';

const described = (state: AppState): AppDescription => ({
  app: 'chat',
  kind: 'functions',
  state,
  version: '1',
  functions: [],
  queueLimit: 1,
  queueTimeoutMs: 1,
  preformatted: true,
});

const announced = (state: AppState) => ({ description: described(state), replicas: { ready: 1, desired: 1 } });

function announcer() {
  const calls: string[] = [];
  const store = { away: false, before: async (): Promise<void> => undefined };
  const record = async (what: string): Promise<void> => {
    await store.before();
    if (store.away) throw new Error('away');
    calls.push(what);
  };
  const logger = { warn: () => undefined, error: () => undefined };
  return {
    calls,
    store,
    announcer: new Announcer(
      {
        announce: (_project, { app, state }) => record(`${app} ${state}`),
        withdraw: (_project, app) => record(`${app} gone`),
      },
      logger,
    ),
  };
}

afterEach(() => {
  jest.useRealTimers();
});

test('each change is announced, and the newest state wins', async () => {
  const { calls, announcer: it, store } = announcer();
  let state: AppState = 'starting';
  let go = (): void => undefined;
  store.before = () =>
    new Promise((resolve) => {
      go = resolve;
    });
  const describe = () => announced(state);
  it.changed('demo', 'chat', describe);
  state = 'broken';
  it.changed('demo', 'chat', describe);
  state = 'ready';
  it.changed('demo', 'chat', describe);
  store.before = async () => undefined;
  go();
  await it.settled();
  expect(calls).toEqual(['chat starting', 'chat ready']);
});

test('a removed app is withdrawn, and not announced again', async () => {
  const { calls, announcer: it } = announcer();
  it.changed('demo', 'chat', () => undefined);
  await it.settled();
  it.again();
  await it.settled();
  expect(calls).toEqual(['chat gone']);
});

test('all apps are announced again after the store was away', async () => {
  const { calls, announcer: it } = announcer();
  it.changed('demo', 'chat', () => announced('ready'));
  await it.settled();
  it.again();
  await it.settled();
  expect(calls).toEqual(['chat ready', 'chat ready']);
});

test('a failed announcement is repeated later', async () => {
  jest.useFakeTimers();
  const { calls, announcer: it, store } = announcer();
  store.away = true;
  it.changed('demo', 'chat', () => announced('ready'));
  await it.settled();
  store.away = false;
  await jest.advanceTimersByTimeAsync(1_000);
  expect(calls).toEqual(['chat ready']);
  await it.stop();
  expect(jest.getTimerCount()).toBe(0);
});
