// Contract 6, `/readyz` of a worker.
import type { AppState } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import type { AppVersions } from './deployments/versions.ts';
import { readyCheck } from './ready.ts';

const apps = (...states: AppState[]) => ({
  projects: () => ['demo'],
  appsOf: () => states.map((state) => ({ describe: () => ({ state }) }) as unknown as AppVersions),
});

test.each([
  [[], undefined],
  [['ready'], undefined],
  [['starting', 'ready'], undefined],
  [['starting', 'broken'], undefined],
  [['broken'], undefined],
  [['starting'], 'its apps are starting'],
  [['starting', 'starting'], 'its apps are starting'],
] as [AppState[], string | undefined][])('with apps %j a worker is unready because: %s', async (states, why) => {
  const check = readyCheck(
    apps(...states),
    async () => undefined,
    () => true,
  );
  expect(await check()).toBe(why);
});

test('a worker is not ready before it has scanned for apps, or while the store is away', async () => {
  let trouble: string | undefined = 'the run store does not answer';
  let looked = false;
  const check = readyCheck(
    apps('ready'),
    async () => trouble,
    () => looked,
  );
  expect(await check()).toBe('the run store does not answer');
  trouble = undefined;
  expect(await check()).toBe('the deployments folder is being scanned');
  looked = true;
  expect(await check()).toBeUndefined();
});
