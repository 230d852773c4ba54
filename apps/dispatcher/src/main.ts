// Contract 4: starts the dispatcher, which signs and delivers webhooks.
import 'reflect-metadata';
import { bootService, nestContext, redisReady } from '@inference-proxy/platform';
import { defaultTimings, storeNotReadyReason } from '@inference-proxy/store';
import { Redis } from 'ioredis';
import { JobConsumer } from './deliveries/job-consumer.ts';
import { dispatcherModule } from './dispatcher.module.ts';
import { HostWatch } from './fairness/host-watch.ts';
import { DispatcherSettings } from './settings.ts';

await bootService({
  name: 'dispatcher',
  about: 'signs and delivers webhooks',
  settings: DispatcherSettings,
  async start(boot) {
    const context = await nestContext(dispatcherModule(boot), boot);
    const redis = context.get(Redis);
    await redisReady(redis);
    const scripts = ['delivery-begin', 'delivery-record', 'hosts'] as const;
    boot.operations.readyWhen(() => storeNotReadyReason(redis, defaultTimings.commandMs, scripts));
    const { QUEUE_DASHBOARD, OPERATIONS_TOKEN } = boot.settings;
    if (QUEUE_DASHBOARD && OPERATIONS_TOKEN !== undefined) {
      // Imported only if it is enabled, because it loads a web server and a page.
      const { DASHBOARD_PATH, queueDashboard } = await import('./operations/queue-dashboard.ts');
      const dashboard = await queueDashboard(redis, OPERATIONS_TOKEN);
      boot.shutdown.add('queues', 'queue dashboard', () => dashboard.close());
      boot.operations.mount(DASHBOARD_PATH, dashboard.handle);
    }
    context.get(HostWatch).start();
    context.get(JobConsumer).start();
    return undefined;
  },
});
