// Contract 6: the worker, which executes the functions of deployed apps and stores their items.
import { bootService } from '@inference-proxy/platform';
import { WorkerSettings } from './settings.ts';
import { startWorker } from './start-worker.ts';

await bootService({
  name: 'worker',
  about: 'runs deployed functions and publishes what they yield',
  settings: WorkerSettings,
  start: startWorker,
});
