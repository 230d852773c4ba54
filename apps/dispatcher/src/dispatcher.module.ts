// Contract 4: the Nest module of the dispatcher, with every part and its dependencies.
import { readFileSync } from 'node:fs';
import { SealedBox, WebhookKeys } from '@inference-proxy/crypto';
import { AddressPolicy, GuardedAgent, WebhookUrls } from '@inference-proxy/egress';
import { accountLog, type Boot, closeRedis, connectRedis, repeatedLines } from '@inference-proxy/platform';
import { DeliveryQueue, DeliveryStore, defaultTimings, HostStore } from '@inference-proxy/store';
import { type DynamicModule, Module } from '@nestjs/common';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { defaultLimits } from './deliveries/attempt.ts';
import { AttemptStarter } from './deliveries/attempt-starter.ts';
import { Deliver } from './deliveries/deliver.ts';
import { JobConsumer } from './deliveries/job-consumer.ts';
import { HostTurns } from './fairness/host-turns.ts';
import { HostWatch } from './fairness/host-watch.ts';
import { Permits } from './fairness/permits.ts';
import { Places } from './fairness/places.ts';
import { DeliveryMetrics } from './operations/delivery-metrics.ts';
import { gaugeDepths } from './operations/gauges.ts';
import { DispatcherSettings } from './settings.ts';

/** The longest time for which an attempt holds a place while it waits for a turn at its receiver. */
const HOST_WAIT_MS = 3000;
/** The longest time for which waiting attempts hold their places after their receiver stops answering. */
const HOST_STILL_MS = 500;
/** The longest time of a quick answer. A receiver with quick answers may have more attempts open. */
const QUICK_MS = 1000;

/** The part of the places that one project may take (docs/decisions/0028-a-project-has-a-share-of-the-attempts.md). */
const PROJECT_PART = 3 / 4;

const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')));

@Module({})
class DispatcherModule {}

export function dispatcherModule(boot: Boot<DispatcherSettings>): DynamicModule {
  const { settings, logger, shutdown, operations, tracing } = boot;
  const repeated = repeatedLines(logger);
  const limits = { ...defaultLimits, headMs: settings.WEBHOOK_TIMEOUT_S * 1000 };
  const recordMs = settings.WEBHOOK_RECORD_S * 1000;
  const perProject = settings.WEBHOOK_PROJECT_CONCURRENCY ?? Math.ceil(settings.WEBHOOK_CONCURRENCY * PROJECT_PART);
  const hostWaitMs = Math.min(HOST_WAIT_MS, limits.headMs);
  const leaseMs = hostWaitMs + limits.headMs + limits.answerMs + recordMs;
  const connect = (name: string, options: Parameters<typeof connectRedis>[3]): Redis => {
    const redis = connectRedis(settings.REDIS_URL, name, logger, options);
    shutdown.add('redis', name, () => closeRedis(redis));
    return redis;
  };
  return {
    module: DispatcherModule,
    providers: [
      { provide: Redis, useFactory: () => connect('dispatcher', { commandMs: defaultTimings.commandMs }) },
      {
        provide: DeliveryStore,
        inject: [Redis],
        useFactory: (redis: Redis) => new DeliveryStore(redis, defaultTimings),
      },
      {
        provide: DeliveryQueue,
        inject: [Redis],
        useFactory: (redis: Redis) => {
          const queue = new DeliveryQueue(redis, repeated);
          shutdown.add('queues', 'next attempts', () => queue.close());
          return queue;
        },
      },
      { provide: AddressPolicy, useFactory: () => new AddressPolicy(settings.WEBHOOK_ALLOWED_NETWORKS) },
      {
        provide: GuardedAgent,
        inject: [AddressPolicy],
        useFactory: (policy: AddressPolicy) =>
          new GuardedAgent({
            policy,
            connectTimeoutMs: settings.WEBHOOK_CONNECT_TIMEOUT_S * 1000,
            maxIdle: settings.WEBHOOK_CONCURRENCY,
          }),
      },
      {
        provide: HostStore,
        inject: [Redis],
        useFactory: (redis: Redis) =>
          new HostStore(redis, {
            leaseMs,
            perProject: settings.WEBHOOK_HOST_CONCURRENCY,
            perHost: settings.WEBHOOK_HOST_CONCURRENCY_ALL,
            project: perProject,
            probeMs: settings.WEBHOOK_PROBE_S * 1000,
            commandMs: defaultTimings.commandMs,
          }),
      },
      {
        provide: Permits,
        inject: [HostStore],
        useFactory: (slots: HostStore) =>
          new Permits({
            slots,
            turns: new HostTurns({
              open: settings.WEBHOOK_HOST_CONCURRENCY,
              proven: settings.WEBHOOK_HOST_CONCURRENCY_PROVEN,
              beyond: Math.ceil(settings.WEBHOOK_CONCURRENCY / 4),
              quickMs: QUICK_MS,
              waitMs: hostWaitMs,
              stillMs: HOST_STILL_MS,
              waiters: Math.ceil((settings.WEBHOOK_CONCURRENCY * 3) / 4),
            }),
            log: repeated,
          }),
      },
      {
        provide: Deliver,
        inject: [DeliveryStore, DeliveryQueue, Permits, GuardedAgent, AddressPolicy],
        useFactory: (
          store: DeliveryStore,
          queue: DeliveryQueue,
          permits: Permits,
          agent: GuardedAgent,
          policy: AddressPolicy,
        ) =>
          new Deliver({
            store,
            queue,
            permits,
            agent,
            urls: new WebhookUrls({ policy, requireHttps: settings.WEBHOOK_REQUIRE_HTTPS }),
            signers: { box: new SealedBox(settings.SECRETS_KEY), keys: new WebhookKeys(settings.SECRETS_KEY) },
            schedule: { delaysS: settings.WEBHOOK_SCHEDULE, jitter: settings.WEBHOOK_JITTER },
            limits,
            leaseMs,
            recordMs,
            version,
            log: repeated,
            lines: accountLog(logger),
            accounts: { metrics: new DeliveryMetrics(operations.registry), tracing },
          }),
      },
      {
        provide: AttemptStarter,
        inject: [Deliver, DeliveryQueue, HostStore, Permits],
        useFactory: (deliver: Deliver, queue: DeliveryQueue, slots: HostStore, permits: Permits) => {
          const places = new Places(settings.WEBHOOK_CONCURRENCY);
          const starter = new AttemptStarter({ deliver, places, permits, queue, log: repeated });
          slots.onWoken(starter.startWoken);
          return starter;
        },
      },
      {
        provide: HostWatch,
        inject: [HostStore, AttemptStarter, DeliveryQueue],
        useFactory: (hosts: HostStore, starter: AttemptStarter, queue: DeliveryQueue) => {
          gaugeDepths(operations.registry, {
            backlogMs: () => queue.backlogMs(),
            counts: () => queue.counts(),
            receivers: () => hosts.counts(),
          });
          const watch = new HostWatch({ hosts, startExpired: starter.startExpired, log: repeated });
          shutdown.add('intake', 'receivers', () => watch.stop());
          return watch;
        },
      },
      {
        provide: JobConsumer,
        inject: [AttemptStarter, DeliveryQueue],
        useFactory: (starter: AttemptStarter, queue: DeliveryQueue) => {
          const connections = {
            fresh: connect('dispatcher-jobs', { whileAway: 'wait' }),
            backlog: connect('dispatcher-backlog', { whileAway: 'wait' }),
          };
          const consumer = new JobConsumer({ connections, starter, queue, log: repeated });
          // Not awaited at intake: `stop` stops the intake at once, and its promise resolves when the last attempt has ended.
          shutdown.add('intake', 'deliveries', () => {
            consumer.stop().catch(() => {});
          });
          shutdown.add('drain', 'attempts under way', () => consumer.stop());
          return consumer;
        },
      },
    ],
  };
}
