// The worker's Nest module: all parts, grouped by folder.
import { randomBytes } from 'node:crypto';
import { accountLog, type Boot, repeatedLines } from '@inference-proxy/platform';
import { DeliveryQueue, DeploymentFeed, defaultTimings, WorkerStore } from '@inference-proxy/store';
import { Module, type Type } from '@nestjs/common';
import { Announcer } from './deployments/announce.ts';
import { Deployments } from './deployments/deployments.ts';
import { Connections } from './execution/connections.ts';
import { RunLogs } from './execution/run-log.ts';
import { Serving } from './execution/serving.ts';
import { ProcessMetrics } from './operations/process-metrics.ts';
import { RunMetrics } from './operations/run-metrics.ts';
import { FreedSlots } from './runtimes/freed-slots.ts';
import { runtimes } from './runtimes/runtimes.ts';
import { ownEnvironment, WorkerSettings } from './settings.ts';
import { BundleCache } from './versions/bundle-cache.ts';
import { DeployedApps } from './versions/deployed-apps.ts';
import { bothSources } from './versions/served-apps.ts';
import { VersionLoader } from './versions/version-loader.ts';

/** Returns the module for a booted service. */
export function workerModule({ settings, logger, operations, tracing }: Boot<WorkerSettings>): Type {
  const repeated = repeatedLines(logger);
  const processes = new ProcessMetrics(operations.registry);
  const slots = new FreedSlots();
  const workerId = randomBytes(8).toString('hex');
  // No line of a run contains a caller's header. The search for headers costs 40 µs a line (measured), more than the rest of the line.
  const runLogger = logger.child({}, { redact: [] });
  const makeRuntime = runtimes({
    maxItemBytes: settings.MAX_ITEM_BYTES,
    maxLogBytes: settings.RUN_LOG_MAX_BYTES,
    logger,
    slots,
    countsOf: (project, app) => processes.of(project, app),
    environment: ownEnvironment(),
  });
  @Module({
    providers: [
      { provide: WorkerSettings, useValue: settings },
      // execution/
      { provide: Connections, useFactory: () => new Connections(settings.REDIS_URL, logger) },
      {
        provide: DeliveryQueue,
        inject: [Connections],
        useFactory: ({ deliveries }: Connections) => new DeliveryQueue(deliveries, repeated),
      },
      {
        provide: WorkerStore,
        inject: [Connections, DeliveryQueue],
        useFactory: ({ commands, subscriber }: Connections, deliveries: DeliveryQueue) =>
          new WorkerStore({
            commands,
            subscriber,
            deliveries,
            logger: repeated,
            workerId,
            windowBytes: settings.STREAM_WINDOW_BYTES,
            maxLogBytes: settings.RUN_LOG_MAX_BYTES,
            timings: { leaseMs: settings.LEASE_MS, renewMs: settings.LEASE_RENEW_MS },
          }),
      },
      {
        provide: Serving,
        inject: [WorkerStore, Deployments, DeployedApps],
        useFactory: (store: WorkerStore, deployments: Deployments, deployed: DeployedApps) =>
          new Serving(
            store,
            bothSources(deployments, deployed),
            slots,
            repeatedLines(runLogger),
            {
              metrics: new RunMetrics(operations.registry),
              tracing,
              log: accountLog(logger),
            },
            new RunLogs({ store, maxBytes: settings.RUN_LOG_MAX_BYTES, logger: runLogger }),
          ),
      },
      // deployments/
      {
        provide: Deployments,
        useFactory: () =>
          new Deployments({
            deploymentsDir: settings.DEPLOYMENTS_DIR,
            serves: settings.WORKER_APPS,
            rescanMs: settings.DEPLOYMENTS_RESCAN_MS,
            maxOutputBytes: settings.MAX_OUTPUT_BYTES,
            makeRuntime,
            logger,
          }),
      },
      // versions/
      {
        provide: DeployedApps,
        inject: [Connections, Deployments],
        useFactory: ({ commands, subscriber }: Connections, deployments: Deployments) => {
          const { commandMs } = defaultTimings;
          const feed = new DeploymentFeed({ commands, subscriber, workerId, commandMs });
          const cache = new BundleCache(settings.BUNDLE_CACHE_DIR, settings.BUNDLES_URL.open());
          return new DeployedApps({
            feed,
            loader: new VersionLoader(feed, cache, settings.MAX_OUTPUT_BYTES),
            serves: settings.WORKER_APPS,
            isInFolder: (project, app) => deployments.find(project, app) !== undefined,
            lookMs: settings.DEPLOYMENTS_RESCAN_MS,
            makeRuntime,
            logger,
          });
        },
      },
      {
        provide: Announcer,
        inject: [WorkerStore],
        useFactory: (store: WorkerStore) => new Announcer(store, repeated),
      },
    ],
  })
  class WorkerModule {}
  return WorkerModule;
}
