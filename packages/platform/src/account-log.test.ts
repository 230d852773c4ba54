// Contract 6: the account log compared with its logger.
import { expect, test } from '@jest/globals';
import { accountLog } from './account-log.ts';
import { createLogger } from './logging.ts';

/** Returns the parsed lines of a logger and of its account log, without their times. */
function both(level: string, write: (log: Pick<ReturnType<typeof accountLog>, 'info' | 'warn' | 'error'>) => void) {
  const written: string[] = [];
  const logger = createLogger({ name: 'test', level, destination: { write: (line) => void written.push(line) } });
  write(logger);
  const asLogged = written.splice(0);
  write(accountLog(logger));
  const parsed = (lines: string[]) =>
    lines.map((line) => {
      expect(line.endsWith('}\n')).toBe(true);
      const { time, ...rest } = JSON.parse(line);
      expect(new Date(time).toISOString()).toBe(time);
      return rest;
    });
  return { logged: parsed(asLogged), account: parsed(written) };
}

test('the account log writes the same lines as the logger, even for names with special characters', () => {
  const { logged, account } = both('info', (log) => {
    log.info({ runId: 'a', status: 200, ms: 1.5, code: undefined, streamed: false }, 'call');
    log.info({ project: 'quote " and \\ and \n and \ud800 and é', items: Number.NaN, error: { code: 'x' } }, 'call');
    log.warn({ runId: 'c', judged: { state: 'failed' } }, 'given up');
    log.error({ runId: 'b' }, 'run');
  });
  expect(account).toHaveLength(4);
  expect(account).toEqual(logged);
});

test('the account log has the level of the logger', () => {
  const { logged, account } = both('error', (log) => {
    log.info({ runId: 'a' }, 'run');
    log.error({ runId: 'b' }, 'run');
  });
  expect(account).toHaveLength(1);
  expect(account).toEqual(logged);
});
