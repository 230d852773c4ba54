// W3C Trace Context, level 1: valid and ignored headers.
import { expect, test } from '@jest/globals';
import { parseTraceparent, validTraceparent } from './traceparent.ts';

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const span = '00f067aa0ba902b7';

test('a traceparent contains a trace id, a span id and the sampling decision', () => {
  expect(parseTraceparent(`00-${trace}-${span}-01`)).toEqual({ traceId: trace, spanId: span, sampled: true });
  expect(parseTraceparent(`00-${trace}-${span}-00`)?.sampled).toBe(false);
  // Only the lowest flag has a meaning.
  expect(parseTraceparent(`00-${trace}-${span}-fe`)?.sampled).toBe(false);
});

test('the known fields of a later version are read and passed on as version 00', () => {
  expect(validTraceparent(`01-${trace}-${span}-01-what-comes`)).toBe(`00-${trace}-${span}-01`);
  expect(validTraceparent(`cc-${trace}-${span}-03`)).toBe(`00-${trace}-${span}-01`);
});

test.each([
  undefined,
  '',
  'nonsense',
  `ff-${trace}-${span}-01`,
  `00-${'0'.repeat(32)}-${span}-01`,
  `00-${trace}-${'0'.repeat(16)}-01`,
  `00-${trace.toUpperCase()}-${span}-01`,
  `00-${trace}-${span}-1`,
  `00-${trace}-${span}`,
  `00-${trace}-${span}-01-more`,
  `00-${trace}-${span}-01.`,
  `01-${trace}-${span}-01more`,
  ` 00-${trace}-${span}-01`,
  `00-${trace}-${span}-01, 00-${trace}-${span}-01`,
  `00-${trace}-${span}-01\n`,
])('%j is ignored', (header) => {
  expect(validTraceparent(header)).toBeUndefined();
});
