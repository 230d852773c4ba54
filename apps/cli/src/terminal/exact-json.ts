// JSON for people, without a change of any number: integers past 2^53 and `1.0` keep their digits.

/** The third argument of a reviver (ECMAScript 2025, JSON.parse source text access). */
interface Source {
  readonly source?: string;
}
type Reviver = (key: string, value: unknown, context: Source) => unknown;
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown;

/** Parses JSON. Numbers become objects that `JSON.stringify` writes with their original digits. */
export const parseExact = (text: string): unknown =>
  parse(text, (_, value, { source }) => (typeof value === 'number' && source !== undefined ? rawJson(source) : value));

/** Returns a value for people: a text as it is, any other value as indented JSON. */
export const readable = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value, undefined, 2) ?? 'null');
