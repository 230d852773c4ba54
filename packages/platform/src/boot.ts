// Contract 6: starts a service with checked settings, a logger, an orderly stop and a message to its parent process.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DynamicModule, INestApplicationContext, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { z } from 'zod';
import { createLogger, type Logger, lastLines, NestLogger } from './logging.ts';
import { OperationsPort } from './operations-port.ts';
import type { commonSettings, operationsPort } from './setting-kinds.ts';
import { helpText, readSettings, type SettingsClass, SettingsError, type SettingsSchema } from './settings.ts';
import { deadlinesFor, Shutdown } from './shutdown.ts';
import type { Tracing } from './tracing.ts';

type Common = z.output<z.ZodObject<typeof commonSettings & { OPERATIONS_PORT: ReturnType<typeof operationsPort> }>>;

/** The parts that every service starts with. */
export interface Boot<Settings> {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly shutdown: Shutdown;
  /** The port listens already. The service adds its metrics, its readiness check and its own pages. */
  readonly operations: OperationsPort;
  /** Absent if tracing is off. */
  readonly tracing: Tracing | undefined;
}

export interface Service<Schema extends SettingsSchema> {
  readonly name: string;
  /** The line for `--help`. */
  readonly about: string;
  readonly settings: SettingsClass<Schema>;
  /**
   * Starts everything, adds to `shutdown` what must be stopped, and resolves when the service is ready.
   * The returned fields are sent to the parent process with `ready: true`.
   */
  start(boot: Boot<z.output<Schema>>): Promise<Readonly<Record<string, unknown>> | undefined>;
}

/**
 * Runs a service; the whole `main.ts` is this call. With `--check`, checks the settings only and exits with 0, or with 1 and the list of errors.
 *
 * If the service has an IPC channel (`npm start` opens one), it sends its parent `{ ready: true, … }` and stops when the parent ends.
 * A `kill -9` of the parent therefore leaves no orphan.
 */
export async function bootService<Schema extends SettingsSchema>(service: Service<Schema>): Promise<void> {
  if (process.argv.includes('--help')) {
    process.stdout.write(helpText(service.name, service.about, service.settings.schema));
    return;
  }
  let settings: z.output<Schema>;
  try {
    settings = new service.settings(readSettings(service.settings.schema));
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`${service.name}: ${error.message}\n`);
    process.exitCode = 1;
    if (process.connected) process.disconnect();
    return;
  }
  if (process.argv.includes('--check')) {
    process.stdout.write(`${service.name}: the settings are valid\n`);
    return;
  }
  const common = settings as Common;
  const { NODE_ENV, LOG_LEVEL, OPERATIONS_HOST, OPERATIONS_PORT } = common;
  const { SHUTDOWN_DELAY_S: delayS, SHUTDOWN_GRACE_S: graceS } = common;
  const logger = createLogger({ name: service.name, level: LOG_LEVEL, pretty: NODE_ENV === 'development' });
  const shutdown = new Shutdown({
    logger,
    deadlines: deadlinesFor({ delayS, graceS }),
    exit: (code) => void lastLines(logger).then(() => process.exit(code)),
  });
  shutdown.add('unready', 'balancers', (signal) => sleep(delayS * 1000, undefined, { signal }));
  shutdown.listen();
  process.once('disconnect', () => void shutdown.stopAndExit('the parent process has ended'));
  const broken = (err: unknown): void => {
    logger.fatal({ err }, 'an uncaught error; the service stops');
    void shutdown.stopAndExit('an uncaught error', 1);
  };
  process.on('uncaughtException', broken).on('unhandledRejection', broken);
  try {
    const operations = new OperationsPort(() => shutdown.stopping);
    // Closed last, with Redis. Until then probes learn that the service is alive and not ready.
    shutdown.add('redis', 'operations port', () => operations.close());
    const operationsPort = await operations.listen(OPERATIONS_HOST, OPERATIONS_PORT);
    const tracing = await openTracing(service.name, common, logger);
    if (tracing) shutdown.add('flush', 'spans', () => tracing.stop());
    const fields = { ...(await service.start({ settings, logger, shutdown, operations, tracing })), operationsPort };
    if (shutdown.stopping) return;
    logger.info(fields, 'ready');
    // The callback form, because it throws no error if the parent has just ended. The event 'disconnect' reports that end.
    process.send?.({ ready: true, ...fields }, undefined, undefined, () => {});
  } catch (err) {
    if (!shutdown.stopping) logger.fatal({ err }, 'could not start');
    await shutdown.stopAndExit('could not start', 1);
  }
}

async function openTracing(service: string, settings: Common, logger: Logger): Promise<Tracing | undefined> {
  const {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: headers = {},
    OTEL_TRACES_SAMPLER_ARG: ratio,
  } = settings;
  if (endpoint === undefined) return undefined;
  const { otlpTracing } = await import('./otlp-tracing.ts');
  return otlpTracing({ endpoint, headers, ratio, service, logger });
}

/** Creates a Nest application context (without HTTP) for a service's module. The phase `flush` closes the context. */
export async function nestContext(
  module: Type | DynamicModule,
  boot: Pick<Boot<unknown>, 'logger' | 'shutdown'>,
): Promise<INestApplicationContext> {
  const context = await NestFactory.createApplicationContext(module, {
    logger: new NestLogger(boot.logger),
    // Nest then throws a provider's error instead of ending the process.
    abortOnError: false,
  });
  boot.shutdown.add('flush', 'nest', () => context.close());
  return context;
}
