// docs/apps: the tables have every key of a manifest, with its type and default.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { parseManifest, sections } from './manifest.ts';

const PAGES = join(import.meta.dirname, '../../../../docs/apps');

interface Key {
  readonly type: string;
  readonly fallback: string;
}

interface JsonSchema {
  readonly type?: string;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
}

/** Returns the rows whose first cell is a key, as `[section] key`. */
function rowsOf(text: string): [string, Key][] {
  return [...text.matchAll(/^\| `(\[[^`]+)` \| ([^|]*) \|([^|]*)\|/gm)].map(
    ([, name = '', type = '', fallback = '']) => [name, { type, fallback: fallback.trim() }],
  );
}

const typeOf = ({ type, anyOf }: JsonSchema): string => type ?? (anyOf ?? []).map(typeOf).join(' or ');

/** Returns a default as the pages write it. */
function written(fallback: unknown): string {
  if (typeof fallback !== 'string') return String(fallback);
  return fallback === '' ? 'empty' : `\`${fallback}\``;
}

/** The defaults that the worker computes. */
const { manifest } = parseManifest('', 1);
const COMPUTED: Readonly<Record<string, unknown>> = {
  '[scaling] replica_concurrency': manifest.replicaConcurrency,
  '[scaling] startup_timeout': manifest.startupTimeoutMs / 1000,
};

const rows = globSync('*.md', { cwd: PAGES }).flatMap((page) => rowsOf(readFileSync(join(PAGES, page), 'utf8')));
const known = Object.entries(sections).flatMap(([section, schema]): [string, string, unknown][] => {
  const { properties } = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema;
  if (properties === undefined) return [[`[${section}]`, 'table', undefined]];
  const defaults: Record<string, unknown> = schema.parse({});
  return Object.entries(properties).map(([key, value]) => [`[${section}] ${key}`, typeOf(value), defaults[key]]);
});

test('the pages list every key of the manifest exactly once, and no other key', () => {
  const names = known.map(([name]) => name);
  expect(names.length).toBeGreaterThan(20);
  expect(rows.map(([name]) => name).sort()).toEqual(names.sort());
});

test.each(known)('the pages have the type and default of %s', (name, expectedType, ownDefault) => {
  const { type, fallback = '' } = new Map(rows).get(name) ?? {};
  const expected = ownDefault ?? COMPUTED[name];
  // A unit or a condition may follow a number.
  const [value] = typeof expected === 'number' ? fallback.split(/[ ;]/, 1) : [fallback];
  expect(type).toBe(expectedType);
  if (expected !== undefined) expect(value).toBe(written(expected));
  // Without a default in the schema, the page says in words what happens.
  else expect(fallback).not.toMatch(/^(\d|true$|false$|empty$)/);
});
