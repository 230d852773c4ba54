// Contract 6: starts a worker: connections, then apps, then runs. A stop ends them in the reverse order.
import 'reflect-metadata';
import { type Boot, nestContext } from '@inference-proxy/platform';
import { DeliveryQueue, defaultTimings, storeNotReadyReason, WorkerStore } from '@inference-proxy/store';
import { Announcer } from './deployments/announce.ts';
import { type AppChanged, Deployments } from './deployments/deployments.ts';
import { Connections } from './execution/connections.ts';
import { Serving } from './execution/serving.ts';
import { gaugeSlots } from './operations/process-metrics.ts';
import { readyCheck } from './ready.ts';
import { OpenedSecrets } from './secrets/opened-secrets.ts';
import type { WorkerSettings } from './settings.ts';
import { DeployedApps } from './versions/deployed-apps.ts';
import { bothSources } from './versions/served-apps.ts';
import { workerModule } from './worker.module.ts';

/** The longest wait for first starts. A slower app is announced as `starting`, and the worker is ready without it. */
const FIRST_STARTS_MS = 10_000;

/** Resolves when the folder was scanned and the first starts have ended or the wait is over. The boot's shutdown stops all started parts. */
export async function startWorker(boot: Boot<WorkerSettings>): Promise<{ apps: number }> {
  const { settings, shutdown, operations } = boot;
  const context = await nestContext(workerModule(boot), boot);
  const connections = context.get(Connections);
  const store = context.get(WorkerStore);
  const deployments = context.get(Deployments);
  const deployed = context.get(DeployedApps);
  const apps = bothSources(deployments, deployed);
  const announcer = context.get(Announcer);
  const serving = context.get(Serving);
  const secrets = context.get(OpenedSecrets);

  gaugeSlots(operations.registry, apps);
  shutdown.add('intake', 'intake', async () => {
    secrets.stop();
    await Promise.all([deployments.stop(), deployed.stop(), announcer.stop(), serving.stopIntake()]);
  });
  shutdown.add('drain', 'runs', (signal) => serving.drain(settings.SHUTDOWN_GRACE_S * 1_000, signal));
  shutdown.add('queues', 'apps', (signal) => Promise.all([deployments.drain(signal), deployed.drain(signal)]));
  shutdown.add('queues', 'store', async () => {
    store.close();
    await context.get(DeliveryQueue).close();
  });
  shutdown.add('redis', 'connections', () => connections.close());

  await connections.ready();
  let looked = false;
  operations.readyWhen(
    readyCheck(
      apps,
      () => storeNotReadyReason(connections.commands, defaultTimings.commandMs, ['take', 'append', 'end']),
      () => looked,
    ),
  );
  connections.commands.on('ready', () => announcer.again());
  // The next renewal notices a store that was emptied behind an unbroken connection (FLUSHALL, a failover to an empty store).
  store.onForgotten = (project) => {
    announcer.again();
    serving.wake(project);
  };
  const changed: AppChanged = (project, app) => {
    announcer.changed(project, app, () => {
      const versions = apps.find(project, app);
      return versions && { description: versions.describe(), replicas: versions.replicas };
    });
    serving.follow();
  };
  secrets.onChange = (project, app) => apps.find(project, app)?.restart();
  await secrets.start();
  // Folders come first, because an app of a folder is not served from versions.
  const started = deployments.start(changed);
  await deployments.scanned();
  await deployed.start(changed);
  await Promise.race([started, after(FIRST_STARTS_MS)]);
  looked = true;
  await announcer.settled();
  return { apps: deployments.size };
}

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
