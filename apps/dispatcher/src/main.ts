// The dispatcher: signs and delivers webhooks (contract 4).
import 'reflect-metadata';
import { bootService, nestContext, redisAnswers, redisReady } from '@inference-proxy/platform';
import { Redis } from 'ioredis';
import { DeliveryWorker } from './deliveries/queue.ts';
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
    boot.operations.readyWhen(async () => ((await redisAnswers(redis)) ? undefined : 'the run store does not answer'));
    context.get(HostWatch).start();
    context.get(DeliveryWorker).start();
    return undefined;
  },
});
