import { expect, test } from '@jest/globals';
import { createLogger, NestLogger } from './logging.ts';

function lines() {
  const written: string[] = [];
  return { written, destination: { write: (line: string) => void written.push(line) } };
}

test('credentials are hidden wherever headers are logged', () => {
  const { written, destination } = lines();
  const logger = createLogger({ name: 'test', destination });
  const headers = { authorization: 'Bearer hunter2', cookie: 'hunter2', 'x-webhook-secret': 'hunter2', accept: '*/*' };
  logger.info({ headers }, 'one');
  logger.info({ req: { headers } }, 'two');
  logger.info(headers, 'three');
  expect(written).toHaveLength(3);
  expect(written.join('')).not.toContain('hunter2');
  expect(written.join('')).toContain('*/*');
});

test('lines are JSON in production and plain text in development', () => {
  const json = lines();
  createLogger({ name: 'test', destination: json.destination }).info({ run: 1 }, 'ended');
  expect(JSON.parse(json.written.join(''))).toMatchObject({ name: 'test', run: 1, msg: 'ended' });
});

test('Nest’s start-up chatter is below info, its errors are errors', () => {
  const { written, destination } = lines();
  const nest = new NestLogger(createLogger({ name: 'test', destination }));
  nest.log('Mapped {/healthz}', 'RouterExplorer');
  expect(written).toHaveLength(0);
  nest.error(new Error('no provider'), 'stack', 'Injector');
  expect(JSON.parse(written.join(''))).toMatchObject({ level: 50, err: { message: 'no provider' } });
});
