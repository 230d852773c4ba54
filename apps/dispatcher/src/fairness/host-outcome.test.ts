// Contract 4, "Isolation": only connection errors, timeouts, 429 and 5xx count as failures of a receiver.
import { expect, test } from '@jest/globals';
import { hostOutcome } from './host-outcome.ts';

test.each([
  [{ status: 200 }, 'good'],
  [{ status: 204 }, 'good'],
  [{ status: 307, errorClass: 'redirect' }, 'good'],
  [{ status: 400 }, 'good'],
  [{ status: 404 }, 'good'],
  [{ status: 410 }, 'good'],
  [{ status: 429 }, 'bad'],
  [{ status: 500 }, 'bad'],
  [{ status: 503 }, 'bad'],
  [{ errorClass: 'dns' }, 'bad'],
  [{ errorClass: 'refused' }, 'bad'],
  [{ errorClass: 'tls' }, 'bad'],
  [{ errorClass: 'timeout' }, 'bad'],
  [{ errorClass: 'reset' }, 'bad'],
  [{ errorClass: 'bad_response' }, 'none'],
  [{ errorClass: 'blocked' }, 'none'],
  [{ errorClass: 'unsigned' }, 'none'],
] as const)('%j gives the outcome %s', (made, expected) => {
  expect(hostOutcome({ at: 0, durationMs: 0, ...made })).toBe(expected);
});
