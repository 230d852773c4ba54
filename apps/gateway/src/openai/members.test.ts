import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { keepMembers } from './members.ts';

const kept = (text: string, ...names: string[]): string =>
  keepMembers(Buffer.from(text), (name) => names.includes(name)).toString();

test.each([
  ['{"a":1.0,"b":2}', ['a'], '{"a":1.0}'],
  ['{"n":12345678901234567890, "x":null}', ['n'], '{"n":12345678901234567890}'],
  [' { "a" : [1,{"b":2}] , "b" : "}" } ', ['b'], '{"b" : "}" }'],
  ['{"a":"\\"},{","b":{}}', ['a'], '{"a":"\\"},{"}'],
  ['{"\\u0061":1,"b":2}', ['a'], '{"\\u0061":1}'],
  ['{"ключ":"é","b":2}', ['ключ'], '{"ключ":"é"}'],
  ['{"a":1}', [], '{}'],
  ['{}', [], '{}'],
])('in %s, the members %j keep their bytes', (text, names, expected) => {
  expect(kept(text, ...names)).toBe(expected);
});

test('an object that keeps all members is returned unchanged', () => {
  const object = Buffer.from('{ "a" : 1 }');
  expect(keepMembers(object, () => true)).toBe(object);
});

test('the kept members are those that JSON.parse yields, for any content', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.func(fc.boolean()), (object, chosen) => {
      const left = keepMembers(Buffer.from(JSON.stringify(object)), (name) => chosen(name));
      const expected = Object.fromEntries(Object.entries(object).filter(([name]) => chosen(name)));
      expect(JSON.parse(left.toString())).toEqual(JSON.parse(JSON.stringify(expected)));
    }),
  );
});
