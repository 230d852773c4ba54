// Contract 6, "Settings": the worker's settings. The worker has neither the key that seals secrets nor the key that verifies tokens.
import { bundleStoreSettings } from '@inference-proxy/bundles';
import {
  bytes,
  commonSettings,
  flag,
  milliseconds,
  operationsPort,
  seconds,
  settingsOf,
  text,
} from '@inference-proxy/platform';
import { z } from 'zod';
import { appFilter } from './deployments/app-folders.ts';

const workerApps = () =>
  text('patterns such as acme/*,demo/chat').transform((patterns, context) => {
    try {
      return appFilter(patterns);
    } catch (error) {
      context.issues.push({ code: 'custom', message: (error as Error).message, input: patterns });
      return z.NEVER;
    }
  });

/** The limits of a function's output. */
const limits = {
  MAX_ITEM_BYTES: bytes().prefault('8MiB').describe('largest item that a function may yield'),
  MAX_OUTPUT_BYTES: bytes().prefault('64MiB').describe('largest output of a run that is promised or not streamed'),
};
const logLimit = {
  RUN_LOG_MAX_BYTES: bytes()
    .prefault('256KiB')
    .describe('size of the kept part of a run’s log; the newest lines are kept'),
};

const builds = {
  ALLOW_BUILD_COMMANDS: flag()
    .prefault('false')
    .describe('run pre_build_commands and shell_commands of manifests during builds'),
};

/** The settings of `npm run check`, which does not serve the app. */
export class CheckSettings extends settingsOf(z.object({ ...limits, ...logLimit, ...builds })) {}

export class WorkerSettings extends settingsOf(
  z.object({
    ...commonSettings,
    OPERATIONS_PORT: operationsPort('9465'),
    DEPLOYMENTS_DIR: text('a folder')
      .default('examples')
      .describe('folder of the apps: <dir>/<project_id>/<app_name>/ holds an app'),
    WORKER_APPS: workerApps().prefault('*/*').describe('served apps, such as acme/*,demo/chat'),
    DEPLOYMENTS_RESCAN_MS: milliseconds()
      .refine((ms) => ms >= 100, 'expected at least 100')
      .prefault('5000')
      .describe('interval of the search for changed code if the file system reports no changes'),
    ...bundleStoreSettings,
    BUNDLE_CACHE_DIR: text('a folder')
      .default('.data/bundle-cache')
      .describe('folder of the unpacked versions; each worker needs its own'),
    BUNDLE_CACHE_MAX_BYTES: bytes()
      .prefault('10GiB')
      .describe('disk for unpacked versions; versions that were not used for the longest time are removed'),
    ENVIRONMENTS_DIR: text('a folder')
      .default('.data/environments')
      .describe('folder of the packages that deployed versions need; each worker needs its own'),
    ENVIRONMENTS_MAX_BYTES: bytes()
      .prefault('20GiB')
      .describe(
        'disk for the packages of deployed versions; packages that were not used for the longest time are removed',
      ),
    BUILD_TIMEOUT_S: seconds()
      .prefault('540')
      .describe('time limit of the build of an environment; below ROLL_OUT_TIMEOUT_S, so that its reason is reported'),
    BUILD_MEMORY_BYTES: bytes().prefault('4GiB').describe('memory limit of a build and all its processes'),
    ...builds,
    ...limits,
    STREAM_WINDOW_BYTES: bytes()
      .prefault('2MiB')
      .describe('size of the kept part of a plain stream; the newest items are kept'),
    ...logLimit,
    LEASE_MS: milliseconds()
      .prefault('15000')
      .describe('lease of a worker: time without a renewal until it counts as dead'),
    LEASE_RENEW_MS: milliseconds().prefault('5000').describe('interval at which a worker renews its leases'),
  }),
) {}

/** Returns the worker's environment. An app gets only the variables of an allow-list. */
export const ownEnvironment = (): Readonly<Record<string, string | undefined>> => process.env;
