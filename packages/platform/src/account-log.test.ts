import { expect, test } from '@jest/globals';
import { accountLog } from './account-log.ts';
import { createLogger } from './logging.ts';

/** What a logger and its account log write, parsed, without their times. */
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

test('its lines are the logger’s, whatever callers put into names', () => {
  const { logged, account } = both('info', (log) => {
    log.info({ runId: 'a', status: 200, ms: 1.5, code: undefined, streamed: false }, 'call');
    log.info({ project: 'quote " and \\ and \n and \ud800 and é', items: Number.NaN, error: { code: 'x' } }, 'call');
    log.warn({ runId: 'c', judged: { state: 'failed' } }, 'given up');
    log.error({ runId: 'b' }, 'run');
  });
  expect(account).toHaveLength(4);
  expect(account).toEqual(logged);
});

test('it is as quiet as the logger', () => {
  const { logged, account } = both('error', (log) => {
    log.info({ runId: 'a' }, 'run');
    log.error({ runId: 'b' }, 'run');
  });
  expect(account).toHaveLength(1);
  expect(account).toEqual(logged);
});
