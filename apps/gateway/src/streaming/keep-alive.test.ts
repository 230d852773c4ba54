import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { KeepAlive } from './live-response.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function idle() {
  const stream = {
    idleTicks: 0,
    comments: 0,
    keepAlive(): void {
      stream.comments += 1;
    },
  };
  return stream;
}

test('an idle stream gets a comment every 15 s, and an active stream gets none', () => {
  const keepAlives = new KeepAlive();
  const [silent, busy] = [idle(), idle()];
  keepAlives.add(silent);
  keepAlives.add(busy);
  for (let seconds = 0; seconds < 31; seconds++) {
    jest.advanceTimersByTime(1000);
    busy.idleTicks = 0;
  }
  expect(silent.comments).toBe(2);
  expect(busy.comments).toBe(0);
  keepAlives.delete(silent);
  keepAlives.delete(busy);
});

test('without streams there is no timer', () => {
  const keepAlives = new KeepAlive();
  const stream = idle();
  keepAlives.add(stream);
  expect(jest.getTimerCount()).toBe(1);
  keepAlives.delete(stream);
  expect(jest.getTimerCount()).toBe(0);
});
