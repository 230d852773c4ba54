// Contract 6: the lines of a failure that repeats.
import { ServiceError } from '@inference-proxy/contracts';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createLogger } from './logging.ts';
import { repeatedLines } from './repeated-lines.ts';

let written: Record<string, unknown>[];
const logger = createLogger({
  name: 'test',
  destination: { write: (line) => void written.push(JSON.parse(line) as Record<string, unknown>) },
});
const texts = (): unknown[] => written.map(({ msg }) => msg);

beforeEach(() => {
  written = [];
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const away = (): Error => new ServiceError('unavailable', 'The run store is not available.', { cause: new Error('x') });

test('an outage logs each kind of line once when it begins, once a minute, and once when it is over', () => {
  const lines = repeatedLines(logger);
  for (let tries = 0; tries < 5 * 100; tries++) {
    for (const project of ['one', 'two']) lines.warn({ err: away(), project }, 'a take failed; trying again');
    jest.advanceTimersByTime(200);
  }
  expect(texts()).toEqual(['a take failed; trying again', 'a take failed; trying again']);
  expect(written[1]).toMatchObject({ project: 'one', leftOut: 599 });
  jest.advanceTimersByTime(12_000);
  expect(written.slice(2)).toEqual([
    expect.objectContaining({ msg: 'no longer: a take failed; trying again', times: 1000, lastedMs: 99_800 }),
  ]);
  jest.advanceTimersByTime(600_000);
  lines.warn({ err: away() }, 'a take failed; trying again');
  expect(texts().slice(3)).toEqual(['a take failed; trying again']);
});

test('lines with different texts or different kinds of error are logged separately', () => {
  const lines = repeatedLines(logger, { againMs: 1_000 });
  const refused = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });
  for (let times = 0; times < 3; times++) {
    lines.error({ err: refused(`WRONGTYPE of try ${times}`) }, 'Redis refused a command');
    lines.error({ err: refused(`NOPERM of try ${times}`) }, 'Redis refused a command');
    lines.error({ err: new TypeError(`bug of try ${times}`) }, 'Redis refused a command');
    lines.warn({}, 'something else');
  }
  expect(written).toHaveLength(4);
  jest.advanceTimersByTime(1_000);
  lines.error({ err: refused('WRONGTYPE again') }, 'Redis refused a command');
  expect(written.at(-1)).toMatchObject({ leftOut: 2, err: { message: 'WRONGTYPE again' } });
});

test('a single line has no summary, and every info line is written', () => {
  const lines = repeatedLines(logger);
  lines.warn({ err: away() }, 'once');
  lines.info({}, 'twice');
  lines.info({}, 'twice');
  jest.advanceTimersByTime(60_000);
  expect(texts()).toEqual(['once', 'twice', 'twice']);
});
