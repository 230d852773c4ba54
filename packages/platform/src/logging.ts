// One logger per service: JSON lines in production, lines for people in development; credentials never reach either.
import type { LoggerService } from '@nestjs/common';
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

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

export function createLogger({ name, level = 'info', pretty: forPeople = false, destination }: LoggerOptions): Logger {
  // In production a line waits for others, 200 ms at most: a system call for each would cost more than the line. What waits at the end
  // of the process is written then.
  const target =
    destination ??
    pino.destination(
      forPeople ? { dest: 1, sync: true } : { dest: 1, sync: false, minLength: 4096, periodicFlush: 200 },
    );
  return pino(
    { name, level, redact: { paths: HIDDEN, censor: '[hidden]' }, timestamp: pino.stdTimeFunctions.isoTime },
    // In this process: a transport would be a thread, and its last lines are lost when the process ends.
    forPeople
      ? pretty({ destination: target, ignore: 'pid,hostname,name', translateTime: 'SYS:HH:MM:ss.l', singleLine: true })
      : target,
  );
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
