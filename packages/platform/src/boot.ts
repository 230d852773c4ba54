// How every service begins: settings or a list of what is wrong with them, a logger, an orderly end, and word to whoever started it.
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

/** What a service starts with. */
export interface Boot<Settings> {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly shutdown: Shutdown;
  /** Listens already; its metrics, its readiness and what is mounted there are the service's to add. */
  readonly operations: OperationsPort;
  /** Absent where tracing is off. */
  readonly tracing: Tracing | undefined;
}

export interface Service<Schema extends SettingsSchema> {
  readonly name: string;
  /** One line for `--help`. */
  readonly about: string;
  readonly settings: SettingsClass<Schema>;
  /**
   * Starts everything, adds to `shutdown` what must be stopped, and resolves when the service is ready.
   * What it returns is told to a supervising parent along with `ready: true`.
   */
  start(boot: Boot<z.output<Schema>>): Promise<Readonly<Record<string, unknown>> | undefined>;
}

/**
 * Runs a service: the whole of its `main.ts`. With `--check` it only checks the settings: exit code 0, or 1 and the list of wrong settings.
 *
 * Started with an IPC channel (`npm start` does), it tells its parent `{ ready: true, … }` and stops when that parent goes, so that no
 * orphan is left by a `kill -9` of the supervisor.
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
  process.once('disconnect', () => void shutdown.stopAndExit('the process that started this one has gone'));
  const broken = (err: unknown): void => {
    logger.fatal({ err }, 'an error that nothing handled');
    void shutdown.stopAndExit('an error that nothing handled', 1);
  };
  process.on('uncaughtException', broken).on('unhandledRejection', broken);
  try {
    const operations = new OperationsPort(() => shutdown.stopping);
    // Last, along with Redis: until then a probe hears that the service is alive and no longer ready.
    shutdown.add('redis', 'operations port', () => operations.close());
    const operationsPort = await operations.listen(OPERATIONS_HOST, OPERATIONS_PORT);
    const tracing = await openTracing(service.name, common, logger);
    if (tracing) shutdown.add('flush', 'spans', () => tracing.stop());
    const told = { ...(await service.start({ settings, logger, shutdown, operations, tracing })), operationsPort };
    if (shutdown.stopping) return;
    logger.info(told, 'ready');
    // The callback form: a parent that has just gone is told of by 'disconnect', not by an exception here.
    process.send?.({ ready: true, ...told }, undefined, undefined, () => {});
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

/** A Nest application context (no HTTP) for a service's one module, closed with the `flush` phase. */
export async function nestContext(
  module: Type | DynamicModule,
  boot: Pick<Boot<unknown>, 'logger' | 'shutdown'>,
): Promise<INestApplicationContext> {
  const context = await NestFactory.createApplicationContext(module, {
    logger: new NestLogger(boot.logger),
    // An error in a provider is thrown to us; Nest's own way is to end the process.
    abortOnError: false,
  });
  boot.shutdown.add('flush', 'nest', () => context.close());
  return context;
}
