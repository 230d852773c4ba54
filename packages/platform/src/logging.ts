// Contract 6: the logger of a service: JSON lines in production, readable lines in development. Neither contains credentials.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LoggerService } from '@nestjs/common';
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { LineOutput } from './line-output.ts';

export type { Logger } from 'pino';

/** Headers that hold a credential (Contract 1), at the depths at which headers are logged. */
const HIDDEN = ['authorization', 'cookie', 'set-cookie', 'x-webhook-secret'].flatMap((header) => [
  `["${header}"]`,
  `*["${header}"]`,
  `*.*["${header}"]`,
]);

/** Returns an error's fields. Of a Redis command only the name stays, because its arguments may contain a password or a caller's data. */
function errorFields(error: Error): object {
  const { command, ...fields } = pino.stdSerializers.err(error);
  // ioredis adds the command, and `redis-refusals.ts` leaves its name only.
  const name = typeof command === 'string' ? command : (command as { name?: unknown } | undefined)?.name;
  return { ...fields, ...(typeof name === 'string' && { command: name }) };
}

export interface LoggerOptions {
  readonly name: string;
  readonly level?: string;
  /** Writes readable lines instead of JSON. */
  readonly pretty?: boolean;
  /** Replaces standard output. */
  readonly destination?: DestinationStream;
}

/** The number of characters that are written at once. */
const BATCH = 32 * 1024;
/** In development, each line is written immediately. */
const LINE = 1;

const STANDARD_OUTPUT = 1;

export function createLogger({ name, level = 'info', pretty: forPeople = false, destination }: LoggerOptions): Logger {
  const options: pino.LoggerOptions = {
    name,
    level,
    redact: { paths: HIDDEN, censor: '[hidden]' },
    serializers: { err: errorFields },
    timestamp: () => `,"time":"${timeOfLine()}"`,
  };
  if (destination) return loggerTo(options, destination, forPeople);
  const output = new LineOutput(STANDARD_OUTPUT, forPeople ? LINE : BATCH, (lines) => {
    logger.warn({ lines }, 'log lines were dropped, because standard output was full');
  });
  const logger = loggerTo(options, output, forPeople);
  standardOutputs.set(logger, output);
  return logger;
}

function loggerTo(options: pino.LoggerOptions, destination: DestinationStream, forPeople: boolean): Logger {
  if (forPeople) return pino(options, readable(destination));
  const logger = pino(options, destination);
  jsonOutputs.set(logger, destination);
  return logger;
}

const FOR_PEOPLE: pretty.PrettyOptions = {
  ignore: 'pid,hostname,name',
  translateTime: 'SYS:HH:MM:ss.l',
  singleLine: true,
};

/** Runs in this process: a transport is a thread, and its last lines are lost when the process ends. */
function readable(output: DestinationStream): DestinationStream {
  const withFields = pretty.prettyFactory(FOR_PEOPLE);
  const withoutFields = pretty.prettyFactory({ ...FOR_PEOPLE, hideObject: true, singleLine: false });
  return {
    write(line) {
      const record = JSON.parse(line) as { traceback?: unknown };
      // The line of a traceback is readable exactly as the program printed it.
      output.write((record.traceback === true ? withoutFields : withFields)(record));
    },
  };
}

/** The destination of each JSON logger. Readable loggers have no entry. */
const jsonOutputs = new WeakMap<Logger, DestinationStream>();
export const jsonOutputOf = (logger: Logger): DestinationStream | undefined => jsonOutputs.get(logger);

let lastTime = 0;
let lastIsoTime = '';

/** Returns the present time as log lines show it. Calls end in batches, so many lines share a millisecond and its text. */
export function timeOfLine(): string {
  const now = Date.now();
  if (now !== lastTime) {
    lastTime = now;
    lastIsoTime = new Date(now).toISOString();
  }
  return lastIsoTime;
}

/** The output of each logger that writes to standard output. */
const standardOutputs = new WeakMap<Logger, LineOutput>();
const LAST_LINES_MS = 500;

/** Waits until the last lines are written, at most `LAST_LINES_MS`, and closes the output. */
export async function lastLines(logger: Logger): Promise<void> {
  const output = standardOutputs.get(logger);
  if (!output) return;
  // Readable lines pass through a stream first.
  await nextTurn();
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LAST_LINES_MS);
  await Promise.race([output.flush(), late.promise]);
  clearTimeout(timer);
  output.close();
}

/** Writes Nest's messages to the service's logger. Nest's start-up messages have the level debug. */
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
