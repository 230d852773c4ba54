// The worker's Nest module: all parts, grouped by folder.
import { randomBytes } from 'node:crypto';
import { openBundleStore } from '@inference-proxy/bundles';
import { accountLog, type Boot, repeatedLines } from '@inference-proxy/platform';
import { DeliveryQueue, DeploymentFeed, defaultTimings, SecretFeed, WorkerStore } from '@inference-proxy/store';
import { Module, type Type } from '@nestjs/common';
import { Announcer } from './deployments/announce.ts';
import { Deployments } from './deployments/deployments.ts';
import { Environments } from './environments/environments.ts';
import { Connections } from './execution/connections.ts';
import { RunLogWriters } from './execution/run-log-writer.ts';
import { Serving } from './execution/serving.ts';
import { ProcessMetrics } from './operations/process-metrics.ts';
import { RunMetrics } from './operations/run-metrics.ts';
import { FreedSlots } from './runtimes/freed-slots.ts';
import { runtimes } from './runtimes/runtimes.ts';
import { OpenedSecrets } from './secrets/opened-secrets.ts';
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
  const { commandMs } = defaultTimings;
  const connections = new Connections(settings.REDIS_URL, logger);
  const feedOptions = { ...connections, workerId, commandMs };
  const secrets = new OpenedSecrets({
    feed: new SecretFeed(feedOptions),
    lookMs: settings.DEPLOYMENTS_RESCAN_MS,
    logger: repeated,
  });
  const makeRuntime = runtimes({
    maxItemBytes: settings.MAX_ITEM_BYTES,
    maxLogBytes: settings.RUN_LOG_MAX_BYTES,
    logger,
    slots,
    countsOf: (project, app) => processes.of(project, app),
    environment: ownEnvironment(),
    secretsOf: secrets.of,
  });
  @Module({
    providers: [
      { provide: WorkerSettings, useValue: settings },
      // execution/
      { provide: Connections, useValue: connections },
      { provide: OpenedSecrets, useValue: secrets },
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
            new RunLogWriters({ store, maxBytes: settings.RUN_LOG_MAX_BYTES, logger: runLogger }),
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
        inject: [Deployments],
        useFactory: async (deployments: Deployments) => {
          const feed = new DeploymentFeed(feedOptions);
          const cache = new BundleCache({
            folder: settings.BUNDLE_CACHE_DIR,
            maxBytes: settings.BUNDLE_CACHE_MAX_BYTES,
            store: await openBundleStore(settings),
            logger,
          });
          const environments = new Environments({
            folder: settings.ENVIRONMENTS_DIR,
            maxBytes: settings.ENVIRONMENTS_MAX_BYTES,
            limits: { timeoutMs: settings.BUILD_TIMEOUT_S * 1_000, memoryBytes: settings.BUILD_MEMORY_BYTES },
            allowCommands: settings.ALLOW_BUILD_COMMANDS,
            environment: ownEnvironment(),
            logger,
          });
          const makeKept: typeof makeRuntime = (place, version, manifest) => {
            const runtime = makeRuntime(place, version, manifest);
            cache.keep(place.folder, runtime);
            environments.keep(place.folder, runtime);
            return runtime;
          };
          return new DeployedApps({
            feed,
            loader: new VersionLoader(feed, cache, environments, settings.MAX_OUTPUT_BYTES),
            serves: settings.WORKER_APPS,
            isInFolder: (project, app) => deployments.find(project, app) !== undefined,
            lookMs: settings.DEPLOYMENTS_RESCAN_MS,
            makeRuntime: makeKept,
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
