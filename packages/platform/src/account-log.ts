// Contract 6: the log line of each call, run and attempt. Every call writes such a line, so the line is built here in one string.
import { hostname } from 'node:os';
import { jsonOutputOf, type Logger, timeOfLine } from './logging.ts';

export interface AccountLog {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/**
 * Returns a log that writes the same lines as `logger` at a quarter of the cost, because it checks nothing.
 *
 * The caller must pass at least one field, no credentials, no errors, and no text with characters that JSON escapes.
 */
export function accountLog(logger: Logger): AccountLog {
  const output = jsonOutputOf(logger);
  if (!output) return logger.child({}, { redact: [] });
  const own = JSON.stringify({ pid: process.pid, hostname: hostname(), ...logger.bindings() }).slice(1, -1);
  const at = (level: 'info' | 'warn' | 'error'): AccountLog['info'] => {
    if (!logger.isLevelEnabled(level)) return () => {};
    const head = `{"level":${logger.levels.values[level]},"time":"`;
    return (fields, text) => {
      output.write(`${head}${timeOfLine()}",${own},${JSON.stringify(fields).slice(1, -1)},"msg":"${text}"}\n`);
    };
  };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}
