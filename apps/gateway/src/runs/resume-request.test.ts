import { describe, expect, test } from '@jest/globals';
import { resumeRequest } from './resume-request.ts';

const asked = (query: string, ...ids: string[]) =>
  resumeRequest({
    url: `/v4/p/runs/r/stream${query}`,
    headers: {},
    rawHeaders: ids.flatMap((id) => ['Last-Event-Id', id]),
  });

test.each<[string, string[], number | undefined]>([
  ['', [], undefined],
  ['?after=0', [], 0],
  ['?after=7', [], 7],
  ['', ['7'], 7],
  // An EventSource repeats its query at every reconnect, and names its last event in the header.
  ['?after=7', ['12'], 12],
  ['?after=7', ['0'], 0],
  ['?after=7', [''], 7],
  ['', ['999999999999999'], 999_999_999_999_999],
  ['?lastEventId=3', [], 3],
  ['?lastEventId=3&after=7', [], 7],
  ['?lastEventId=3', ['4'], 4],
])('%j with Last-Event-ID %j begins after %j', (query, ids, after) => {
  expect(asked(query, ...ids).after).toBe(after);
});

describe('a rejected request:', () => {
  test.each([
    ['?after=', []],
    ['?after=-1', []],
    ['?after=1.5', []],
    ['?after=1e3', []],
    ['?after=%201', []],
    ['?after=1&after=1', []],
    ['?after=9999999999999999', []],
    // Rejected also if the other parameter is valid.
    ['?after=x', ['1']],
    ['?after=1', ['x']],
    ['', ['1', '1']],
    ['', ['1, 2']],
    ['?events=some', []],
    ['?lastEventId=', []],
    ['?lastEventId=x', []],
    ['?lastEventId=1&lastEventId=1', []],
    ['?lastEventId=x', ['1']],
  ])('%j with Last-Event-ID %j', (query, ids) => {
    expect(() => asked(query, ...ids)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });
});

test('events are numbered in every resumed stream, and named in the rich stream', () => {
  expect(asked('').form).toBe('ids');
  expect(asked('?ids=false').form).toBe('ids');
  expect(asked('?events=full').form).toBe('rich');
});
