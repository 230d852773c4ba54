// The gateway: HTTP in front of the run store.
import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { openBundleStore } from '@inference-proxy/bundles';
import { SealedBox } from '@inference-proxy/crypto';
import {
  bootService,
  closeRedis,
  connectRedis,
  gaugeBacklog,
  redisReady,
  repeatedLines,
} from '@inference-proxy/platform';
import {
  DeliveryQueue,
  defaultTimings,
  GatewayStore,
  Maintenance,
  Rounds,
  Shares,
  UsedBundles,
} from '@inference-proxy/store';
import { listen } from './gateway.ts';
import { GatewaySettings } from './settings.ts';
import { logAudit } from './versions/audit.ts';
import { LONGEST_UPLOAD_MS } from './versions/bundle-body.ts';
import { BundleCollector } from './versions/bundle-collector.ts';
import { SecretCopies } from './versions/secret-copies.ts';
import { SecretSeals } from './versions/secret-seals.ts';

await bootService({
  name: 'gateway',
  about: 'takes calls over HTTP, streams their items and answers their outcome',
  settings: GatewaySettings,
  async start(boot) {
    const { settings, logger, operations, shutdown } = boot;
    const connections = ['commands', 'subscriber', 'deliveries'] as const;
    const redis = Object.fromEntries(
      connections.map((name) => [name, connectRedis(settings.REDIS_URL, `gateway.${name}`, logger)]),
    ) as Record<(typeof connections)[number], ReturnType<typeof connectRedis>>;
    for (const client of Object.values(redis)) shutdown.add('redis', 'redis', () => closeRedis(client));
    await Promise.all(Object.values(redis).map(redisReady));

    const repeated = repeatedLines(logger);
    const deliveries = new DeliveryQueue(redis.deliveries, repeated);
    gaugeBacklog(operations.registry, deliveries);
    const gatewayId = randomUUID().replaceAll('-', '');
    const timings = {
      leaseMs: settings.LEASE_MS,
      attendMs: settings.ATTEND_MS,
      reapMs: settings.REAP_MS,
      workerGraceMs: settings.WORKER_GRACE_S * 1000,
    };
    const storeMaxBytes = settings.RUN_STORE_MAX_BYTES;
    const shared = { ...redis, deliveries, logger: repeated, timings, shares: new Shares() };
    const store = new GatewayStore({ ...shared, gatewayId });
    const maintenance = new Maintenance({
      ...shared,
      ...(storeMaxBytes !== undefined && { storeMaxBytes }),
      undone: (project, entry) => logAudit(logger, project, entry),
    });
    const collector = new BundleCollector({
      bundles: await openBundleStore(settings),
      used: new UsedBundles(redis.commands, defaultTimings),
      retentionMs: settings.BUNDLE_RETENTION_S * 1000,
      uploadMs: LONGEST_UPLOAD_MS,
      logger: repeated,
    });
    const box = new SealedBox(settings.SECRETS_KEY);
    const copies = new SecretCopies(store.secrets, box, { logger: repeated, everyMs: timings.reapMs });
    const rounds = new Rounds([copies, collector, new SecretSeals(store.secrets, box, repeated)]);
    store.start();
    maintenance.start();
    rounds.start();
    shutdown.add('flush', 'store', async () => {
      maintenance.stop();
      rounds.stop();
      store.stop();
      await deliveries.close();
    });
    return { port: await listen(boot, store) };
  },
});
