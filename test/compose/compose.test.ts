// docker-compose.yml with a real engine: the commands of docs/operations/*.md. Without an engine the tests are skipped with a message.
import { chmod, cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { root } from '../documents/markdown.ts';
import { testBackups } from './backups.ts';
import { ComposeStack } from './compose-stack.ts';
import { testDeployments } from './deployments.ts';
import { type Engine, findEngine, NoEngine } from './engine.ts';
import { testIsolation } from './isolation.ts';
import { testProxy } from './proxy.ts';
import { ALL, answers, DASHBOARD_TOKEN, type Here, PRIVATE_NETWORKS, SCALE, say } from './running.ts';
import { testServing } from './serving.ts';
import { testUnderLoad } from './under-load.ts';
import { testUpgrades } from './upgrades.ts';

jest.setTimeout(600_000);
const BUILD_MS = 660_000;

const engine: Engine | string = await findEngine().catch((error: unknown) => {
  if (!(error instanceof NoEngine)) throw error;
  return error.message;
});
if (typeof engine === 'string') say(`not run here: ${engine}`);

(typeof engine === 'string' ? describe.skip : describe)('the compose stack', () => {
  const here = {} as Here;
  let deployments: string;
  beforeAll(async () => {
    const began = performance.now();
    // The apps of all tests, and the app `heads`, which returns the headers that it receives.
    deployments = await mkdtemp(join(tmpdir(), 'deployments-'));
    for (const apps of ['test/apps', 'test/compose/apps']) await cp(join(root, apps), deployments, { recursive: true });
    await chmod(deployments, 0o755);
    here.stack = await ComposeStack.prepare(engine as Engine, {
      DEPLOYMENTS: deployments,
      RUN_LOG_MAX_BYTES: '100000',
      GATEWAYS: String(SCALE.gateway),
      WORKERS: String(SCALE.worker),
      DISPATCHERS: String(SCALE.dispatcher),
      WEBHOOK_ALLOWED_NETWORKS: PRIVATE_NETWORKS,
      COMPOSE_PROFILES: 'proxy-metrics',
      QUEUE_DASHBOARD: 'true',
      OPERATIONS_TOKEN: DASHBOARD_TOKEN,
    });
    await here.stack.build('gateway', 'worker', 'dispatcher');
    say(`images built in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }, BUILD_MS);
  afterAll(async () => {
    await here.stack?.down();
    await rm(deployments, { recursive: true, force: true });
  }, 120_000);

  test('starts three gateways, four workers and two dispatchers, and answers', async () => {
    const began = performance.now();
    await here.stack.up(ALL);
    await answers(here.stack);
    say(`${((performance.now() - began) / 1000).toFixed(1)} s from built images to the first answer`);
    for (const service of ['gateway', 'worker', 'dispatcher'] as const)
      expect(await here.stack.containers(service)).toHaveLength(SCALE[service]);
  });

  testIsolation(here);
  testServing(here);
  testDeployments(here);
  testUnderLoad(here);
  testUpgrades(here);
  testBackups(here);
  testProxy(here);
});
