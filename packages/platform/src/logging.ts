// One logger per service: JSON lines in production, lines for people in development; credentials never reach either.
import type { LoggerService } from '@nestjs/common';
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

type SonicBoom = ReturnType<typeof pino.destination>;

/** Headers that hold a credential (contract 1), in the two depths they are logged at. */
const HIDDEN = ['authorization', 'cookie', 'set-cookie', 'x-webhook-secret'].flatMap((header) => [
  `["${header}"]`,
  `*["${header}"]`,
  `*.*["${header}"]`,
]);

export interface LoggerOptions {
  readonly name: string;
  readonly level?: string;
  /** Lines for people instead of JSON. */
  readonly pretty?: boolean;
  /** Instead of standard output. */
  readonly destination?: DestinationStream;
}

/** Standard output that nobody takes up (a paused terminal, a log driver that hangs) costs this much memory and no more. */
const MOST_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * In production lines wait for others, 200 ms at most, for a system call each would cost more than the line does. What
 * waits when the process ends, by whatever way but SIGKILL, is written then.
 *
 * 4 KiB is the cheapest batch (12.7 µs a line in all; 1 KiB 13.5, 16 KiB 18, 60 KiB 28): sonic-boom measures what waits anew at every line.
 */
const BATCH = { minLength: 4096, periodicFlush: 200 };

/** For people each line comes at once. */
const LINE = { minLength: 1 };

/** Never waited for: neither by the service's own work nor, past {@link LAST_LINES_MS}, by its end. */
function standardOutput(batch: typeof BATCH | typeof LINE): SonicBoom {
  // Asked for, Node makes a pipe or socket there non-blocking. A write that blocks, because whoever has the other end does not read, would
  // hold one of the threads that are waited for when the process ends.
  process.stdout.on('error', () => {});
  return pino.destination({ dest: 1, sync: false, maxLength: MOST_WAITING_BYTES, ...batch });
}

/** Tells how many lines found no room, once there is room again. */
function tellDropped(destination: SonicBoom, logger: Logger): void {
  let dropped = 0;
  destination.on('drop', () => {
    dropped += 1;
  });
  destination.on('drain', () => {
    if (dropped === 0) return;
    const lines = dropped;
    dropped = 0;
    logger.warn({ lines }, 'log lines were left out: standard output did not take them');
  });
}

export function createLogger({ name, level = 'info', pretty: forPeople = false, destination }: LoggerOptions): Logger {
  const options: pino.LoggerOptions = {
    name,
    level,
    redact: { paths: HIDDEN, censor: '[hidden]' },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  if (destination) return pino(options, forPeople ? readable(destination) : destination);
  const output = standardOutput(forPeople ? LINE : BATCH);
  const logger = pino(options, forPeople ? readable(output) : output);
  tellDropped(output, logger);
  outputs.set(logger, output);
  return logger;
}

/** In this process: a transport would be a thread, and its last lines are lost when the process ends. */
const readable = (destination: DestinationStream): DestinationStream =>
  pretty({ destination, ignore: 'pid,hostname,name', translateTime: 'SYS:HH:MM:ss.l', singleLine: true });

/** Where the lines of loggers wait. */
const outputs = new WeakMap<Logger, SonicBoom>();
const LAST_LINES_MS = 500;

/**
 * Lets the last lines out before the process ends, as far as somebody takes them. At the end itself sonic-boom tries for ever to write them to
 * a pipe that has no reader any more, and the process would never end.
 */
export async function lastLines(logger: Logger): Promise<void> {
  const output = outputs.get(logger);
  if (!output) return;
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LAST_LINES_MS);
  // The first is over with the write that may be under way, which leaves what makes no batch.
  const written = new Promise<void>((resolve) => output.flush(() => output.flush(() => resolve())));
  await Promise.race([written, late.promise]);
  clearTimeout(timer);
  output.flushSync = () => {};
}

/** Nest's own messages through our logger; its start-up chatter only where debug is asked for. */
export class NestLogger implements LoggerService {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  log(message: unknown, ...context: unknown[]): void {
    this.#logger.debug({ context: context.at(-1) }, String(message));
  }

  verbose(message: unknown, ...context: unknown[]): void {
    this.#logger.trace({ context: context.at(-1) }, String(message));
  }

  debug(message: unknown, ...context: unknown[]): void {
    this.#logger.debug({ context: context.at(-1) }, String(message));
  }

  warn(message: unknown, ...context: unknown[]): void {
    this.#logger.warn({ context: context.at(-1) }, String(message));
  }

  error(message: unknown, ...more: unknown[]): void {
    this.#logger.error(message instanceof Error ? { err: message } : { more }, String(message));
  }

  fatal(message: unknown, ...more: unknown[]): void {
    this.#logger.fatal(message instanceof Error ? { err: message } : { more }, String(message));
  }
}
