// Contract 5: the delivery log shows an address only if it is public or part of the URL.
import { expect, test } from '@jest/globals';
import { shownRecord } from './shown-record.ts';

test.each([
  ['https://hook.example.com/', '93.184.215.14', true],
  ['https://hook.example.com/', '2606:2800:21f::1', true],
  ['https://hook.example.com/', '10.1.2.3', false],
  ['https://hook.example.com/', '::ffff:10.1.2.3', false],
  ['https://hook.example.com/', 'fd00::1', false],
  ['http://localhost:8080/', '127.0.0.1', false],
  ['http://127.0.0.1:8080/', '127.0.0.1', true],
  ['http://[fd00::1]/', 'fd00::1', true],
])('the log of a delivery to %s at %s shows the address: %p', (url, address, isShown) => {
  const made = { at: 1, durationMs: 2, errorClass: 'refused', address };
  expect(shownRecord(made, url)).toEqual(isShown ? made : { at: 1, durationMs: 2, errorClass: 'refused' });
});
