// Contract 6, "Settings": reading, errors and the text of `--help`.
import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { bytes, commonSettings, flag, list, milliseconds, port, redisUrl, seconds, secret } from './setting-kinds.ts';
import { helpText, readSettings, SettingsError, settingsOf } from './settings.ts';

class Example extends settingsOf(
  z.object({
    ...commonSettings,
    PORT: port().prefault('8080').describe('where it listens'),
    MAX_BODY_BYTES: bytes().prefault('8MiB').describe('largest body'),
    JWT_SECRET: secret('a secret of at least 8 characters', 8).describe('verifies tokens'),
    NETWORKS: list().prefault('').describe('networks that are open'),
    COMMIT_MS: milliseconds().optional().describe('how long a status line is held back'),
    GRACE_S: seconds().prefault('30'),
    DASHBOARD: flag().prefault('false'),
  }),
) {}

const enough = { REDIS_URL: 'redis://127.0.0.1:6379', JWT_SECRET: 'long enough' };

test('settings are typed values, with the defaults of their schema', () => {
  const settings = new Example(
    readSettings(Example.schema, { ...enough, NETWORKS: '127.0.0.0/8, ::1/128', GRACE_S: '0.2' }),
  );
  expect(settings).toBeInstanceOf(Example);
  expect(settings.PORT).toBe(8080);
  expect(settings.MAX_BODY_BYTES).toBe(8_388_608);
  expect(settings.NETWORKS).toEqual(['127.0.0.0/8', '::1/128']);
  expect(settings.COMMIT_MS).toBeUndefined();
  expect(settings.GRACE_S).toBe(0.2);
  expect(settings.NODE_ENV).toBe('production');
});

test('all missing and wrong settings are reported together, with the expected form', () => {
  const env = { PORT: '80a', MAX_BODY_BYTES: '8MB', DASHBOARD: 'yes', NODE_ENV: 'prod' };
  let problems: readonly string[] = [];
  try {
    readSettings(Example.schema, env);
  } catch (error) {
    problems = (error as SettingsError).problems;
  }
  expect([...problems].sort()).toEqual([
    'DASHBOARD is wrong: expected true or false, got "yes"',
    'JWT_SECRET is missing: expected a secret of at least 8 characters',
    'MAX_BODY_BYTES is wrong: expected a number of bytes, such as 8388608 or 8MiB, got "8MB"',
    'NODE_ENV is wrong: expected development, production or test, got "prod"',
    'PORT is wrong: expected a port number from 0 to 65535, got "80a"',
    'REDIS_URL is missing: expected redis://host:port, rediss://host:port (TLS) or redis+unix:///path of a socket',
  ]);
});

test('the value of a secret is never shown, nor is a password in an address', () => {
  const env = { JWT_SECRET: 'hunter2', REDIS_URL: 'http://user:hunter2@host' };
  expect(() => readSettings(Example.schema, env)).toThrow(SettingsError);
  expect(() => readSettings(Example.schema, env)).not.toThrow(/hunter2/);
});

test('an empty setting counts as not set', () => {
  expect(readSettings(Example.schema, { ...enough, PORT: '' }).PORT).toBe(8080);
  expect(() => readSettings(Example.schema, { ...enough, JWT_SECRET: ' ' })).toThrow(/JWT_SECRET is missing/);
});

test('the URL of Redis has one of three forms, each with or without a user', () => {
  const sockets = ['redis+unix:///tmp/redis.sock', 'redis+unix://gateway:hunter2@localhost/tmp/redis.sock'];
  for (const good of ['redis://h:1', 'rediss://:p@h:1/2', 'redis://gateway:hunter2@h:1', ...sockets])
    expect(redisUrl().safeParse(good).success).toBe(true);
  for (const bad of ['h:1', 'http://h', 'redis+unix://tmp', 'redis+unix://u:p@elsewhere/tmp/s', '/tmp/redis.sock'])
    expect(redisUrl().safeParse(bad).success).toBe(false);
});

test('--help lists every setting with its default and its meaning', () => {
  const text = helpText('example', 'shows settings', Example.schema);
  expect(text).toContain('example: shows settings');
  expect(text).toMatch(/PORT +where it listens \(default 8080\)/);
  expect(text).toMatch(/JWT_SECRET +verifies tokens \(required\)/);
  expect(text).toMatch(/COMMIT_MS +how long a status line is held back \(not set\)/);
  expect(text).toMatch(/MAX_BODY_BYTES +largest body \(default 8MiB\)/);
});

test('headers for a collector are names and values, and no error shows them', () => {
  const read = (OTEL_EXPORTER_OTLP_HEADERS: string) =>
    readSettings(Example.schema, { ...enough, OTEL_EXPORTER_OTLP_HEADERS }).OTEL_EXPORTER_OTLP_HEADERS;
  expect(read('x-api-key=abc%3D%2C==, x-team = mine')).toEqual({ 'x-api-key': 'abc=,==', 'x-team': 'mine' });
  for (const wrong of ['hunter2', 'a=b,,c=d', 'a b=c', 'a=%zz', '=hunter2']) {
    expect(() => read(wrong)).toThrow('OTEL_EXPORTER_OTLP_HEADERS is wrong: expected headers');
    expect(() => read(wrong)).not.toThrow('hunter2');
  }
});
