import { expect, test } from '@jest/globals';
import { formats } from './formats.ts';

const CASES: Record<string, { readonly valid: readonly string[]; readonly invalid: readonly string[] }> = {
  date: {
    valid: ['2026-11-22', '0001-01-01', '9999-12-31', '2024-02-29', '2000-02-29'],
    invalid: [
      '',
      '0000-01-01',
      '2026-2-3',
      '2026-13-01',
      '2026-00-10',
      '2026-04-31',
      '2023-02-29',
      '1900-02-29',
      '2026-11-22T',
      '2026-11-22\n',
      '٢٠٢٦-11-22',
    ],
  },
  time: {
    valid: ['00:00', '23:59:59', '12:30:00.123456789', '12:30Z', '12:30:15+05:30', '12:30:15.5-23:59'],
    invalid: [
      '',
      '24:00',
      '12:60',
      '12:30:60',
      '12:30:15.',
      '12:30:15.1234567890',
      '12:30z',
      '12:30+5:30',
      '12:30+24:00',
      '12:30+05:60',
      '1:30',
    ],
  },
  'date-time': {
    valid: ['2026-11-22T20:30:00Z', '2026-11-22 20:30', '2026-11-22T20:30:00.5+01:00', '2026-11-22T20:30:00'],
    invalid: [
      '2026-11-22',
      '2026-11-22t20:30:00',
      '2026-11-22  20:30',
      '2026-02-30T20:30:00Z',
      '2026-11-22T24:00:00Z',
      '1795000000',
    ],
  },
  duration: {
    valid: ['P1D', 'PT1H', 'P1DT2H3M4.5S', '-PT0.000001S', 'P00000001D', 'PT5M'],
    invalid: [
      '',
      'P',
      'PT',
      'P1DT',
      'P1Y',
      'PT1000000H',
      'PT1000000M',
      'P1W',
      'P1M',
      'PT1.5H',
      'P123456789D',
      '1D',
      'PT1.1234567S',
    ],
  },
  uuid: {
    valid: ['01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17', '01A1FC42-CA24-0B52-0D40-3F6A2C8E5B17'],
    invalid: [
      '',
      '01a1fc42ca247b529d403f6a2c8e5b17',
      '{01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17}',
      '01a1fc42-ca24-7b52-9d40-3f6a2c8e5b1g',
    ],
  },
  decimal: {
    valid: ['0', '-1.50', '+.5', '1.', '1e10', '12345678901234567890.123E-5'],
    invalid: ['', '.', 'e5', 'NaN', 'Infinity', '1,5', '1_000', '0x10', `${'1'.repeat(401)}`, '1e12345'],
  },
};

test('the gateway checks the documented formats, and no others', () => {
  expect(Object.keys(formats).sort()).toEqual(Object.keys(CASES).sort());
});

test.each(Object.entries(CASES).flatMap(([name, { valid }]) => valid.map((text) => [name, text] as const)))(
  'a %s may be %j',
  (name, text) => {
    expect(formats[name]?.(text)).toBe(true);
  },
);

test.each(Object.entries(CASES).flatMap(([name, { invalid }]) => invalid.map((text) => [name, text] as const)))(
  'a %s is not %j',
  (name, text) => {
    expect(formats[name]?.(text)).toBe(false);
  },
);
