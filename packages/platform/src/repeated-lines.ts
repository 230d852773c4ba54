// Contract 6: logs a repeated failure as a first line and a summary. A retry loop would otherwise log a line at each try during an outage.
import { ServiceError } from '@inference-proxy/contracts';
import type { Logger } from './logging.ts';

/** A line is repeated at most this often while its failure lasts. */
const AGAIN_MS = 60_000;
/** A failure is over after this time without its line. Every loop retries sooner. */
const OVER_MS = 10_000;
const LOOK_MS = 1_000;

/** The part of a logger that loops use. */
export interface LineLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface RepeatedLinesOptions {
  /** Least time between two equal lines, milliseconds. */
  readonly againMs?: number;
  /** Whether the end of a failure is logged. */
  readonly summary?: boolean;
}

interface Repeated {
  readonly text: string;
  readonly since: number;
  writtenAt: number;
  lastAt: number;
  times: number;
  leftOut: number;
}

/**
 * Returns a logger for failures that repeat. Lines at `warn` and `error` are equal if their texts and the kinds of their `err` are equal.
 * The first of equal lines is written at once, then one each `againMs` with the number of lines left out. Left-out lines are at `debug`.
 */
export function repeatedLines(logger: Logger, options: RepeatedLinesOptions = {}): LineLog {
  const { againMs = AGAIN_MS, summary = true } = options;
  const known = new Map<string, Repeated>();
  let timer: NodeJS.Timeout | undefined;

  const look = (): void => {
    const now = performance.now();
    for (const [key, { text, since, lastAt, times }] of known) {
      if (now - lastAt < Math.max(OVER_MS, summary ? 0 : againMs)) continue;
      known.delete(key);
      const lastedMs = Math.round(lastAt - since);
      if (summary && times > 1) logger.info({ times, lastedMs }, `no longer: ${text}`);
    }
    if (known.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  const at =
    (level: 'warn' | 'error') =>
    (fields: object, text: string): void => {
      const now = performance.now();
      const key = `${level} ${text} ${'err' in fields ? kindOf(fields.err) : ''}`;
      const repeated = known.get(key);
      if (!repeated) {
        known.set(key, { text, since: now, writtenAt: now, lastAt: now, times: 1, leftOut: 0 });
        timer ??= setInterval(look, LOOK_MS).unref();
        logger[level](fields, text);
        return;
      }
      repeated.lastAt = now;
      repeated.times++;
      if (now - repeated.writtenAt < againMs) {
        repeated.leftOut++;
        logger.debug(fields, text);
        return;
      }
      const { leftOut } = repeated;
      repeated.writtenAt = now;
      repeated.leftOut = 0;
      logger[level]({ ...fields, leftOut }, text);
    };

  return {
    debug: (fields, text) => logger.debug(fields, text),
    info: (fields, text) => logger.info(fields, text),
    warn: at('warn'),
    error: at('error'),
  };
}

/** Returns a short word for an error. The message is not used, because it may differ at each try. */
function kindOf(error: unknown): string {
  if (error instanceof ServiceError) return `${error.code} ${kindOf(error.cause)}`;
  if (!(error instanceof Error)) return typeof error;
  if (error.name === 'ReplyError') return error.message.split(' ', 1)[0] ?? '';
  return 'code' in error ? String(error.code) : error.name;
}
