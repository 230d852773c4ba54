// One logger per service: JSON lines in production, lines for people in development; credentials never reach either.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LoggerService } from '@nestjs/common';
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { LineOutput } from './line-output.ts';

export type { Logger } from 'pino';

/** Headers that hold a credential (contract 1), in the two depths they are logged at. */
const HIDDEN = ['authorization', 'cookie', 'set-cookie', 'x-webhook-secret'].flatMap((header) => [
  `["${header}"]`,
  `*["${header}"]`,
  `*.*["${header}"]`,
]);

/** An error's fields. A Redis client attaches the command with its arguments, which may hold a password or a caller's data: the name stays. */
function errorFields(error: Error): object {
  const { command, ...fields } = pino.stdSerializers.err(error);
  const name = (command as { name?: unknown } | undefined)?.name;
  return { ...fields, ...(typeof name === 'string' && { command: name }) };
}

export interface LoggerOptions {
  readonly name: string;
  readonly level?: string;
  /** Lines for people instead of JSON. */
  readonly pretty?: boolean;
  /** Instead of standard output. */
  readonly destination?: DestinationStream;
}

/** Characters of lines that are written at once. */
const BATCH = 32 * 1024;
/** For people each line comes at once. */
const LINE = 1;

const STANDARD_OUTPUT = 1;

export function createLogger({ name, level = 'info', pretty: forPeople = false, destination }: LoggerOptions): Logger {
  const options: pino.LoggerOptions = {
    name,
    level,
    redact: { paths: HIDDEN, censor: '[hidden]' },
    serializers: { err: errorFields },
    timestamp: () => `,"time":"${isoTime()}"`,
  };
  if (destination) return loggerTo(options, destination, forPeople);
  const output = new LineOutput(STANDARD_OUTPUT, forPeople ? LINE : BATCH, (lines) => {
    logger.warn({ lines }, 'log lines were left out: standard output did not take them');
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

/** In this process: a transport would be a thread, and its last lines are lost when the process ends. */
function readable(output: DestinationStream): DestinationStream {
  const withFields = pretty.prettyFactory(FOR_PEOPLE);
  const withoutFields = pretty.prettyFactory({ ...FOR_PEOPLE, hideObject: true, singleLine: false });
  return {
    write(line) {
      const record = JSON.parse(line) as { traceback?: unknown };
      // A line of a traceback is readable as its program printed the line.
      output.write((record.traceback === true ? withoutFields : withFields)(record));
    },
  };
}

/** Where the JSON lines of loggers go; none for those that write for people. */
const jsonOutputs = new WeakMap<Logger, DestinationStream>();
export const jsonOutputOf = (logger: Logger): DestinationStream | undefined => jsonOutputs.get(logger);

let lastTime = 0;
let lastIsoTime = '';

/** Now, as lines have it. Calls end in batches: many lines have the same millisecond. */
export function isoTime(): string {
  const now = Date.now();
  if (now !== lastTime) {
    lastTime = now;
    lastIsoTime = new Date(now).toISOString();
  }
  return lastIsoTime;
}

/** Where the lines of loggers wait. */
const standardOutputs = new WeakMap<Logger, LineOutput>();
const LAST_LINES_MS = 500;

/** Lets the last lines out before the process ends, as far as somebody takes them. */
export async function lastLines(logger: Logger): Promise<void> {
  const output = standardOutputs.get(logger);
  if (!output) return;
  // What is for people passes through a stream first.
  await nextTurn();
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LAST_LINES_MS);
  await Promise.race([output.flush(), late.promise]);
  clearTimeout(timer);
  output.close();
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
