import type { AppDescription } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import { ProjectApps } from './project.ts';

const serving: AppDescription = {
  app: 'chat',
  kind: 'functions',
  state: 'ready',
  version: '1f',
  functions: [],
  queueLimit: 1,
  queueTimeoutMs: 1,
  preformatted: true,
};

async function listed(app: AppDescription): Promise<object> {
  const store = { registry: { apps: async () => new Map([[app.app, app]]) } } as unknown as GatewayStore;
  return JSON.parse((await new ProjectApps(store).list('demo')).toString()).apps[0];
}

test('a version that failed to start is listed beside the version that serves', async () => {
  const error = { code: 'app_failed_to_start', type: 'ModuleNotFoundError', message: 'import failed' } as const;
  expect(await listed({ ...serving, failed: { version: '2e', error } })).toMatchObject({
    app: 'chat',
    state: 'ready',
    version: '1f',
    failed: { version: '2e', error: { ...error, retryable: true } },
  });
  expect(await listed(serving)).not.toHaveProperty('failed');
});
