// Contract 6: every time setting has an upper bound, because Node fires a timer immediately if its time is above 2^31 - 1 ms.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { childEnvironment } from '../stack/child-environment.ts';

const root = join(import.meta.dirname, '..', '..');
const program = (service: string): string => join(root, 'apps', service, 'dist', 'bundle', 'main.js');

/** Only the store uses these times, so the limit of timers does not apply. */
const NO_TIMER = new Set(['BUNDLE_RETENTION_S', 'RUN_RETENTION_S', 'SYNC_RUN_RETENTION_S', 'REVOCATION_RETENTION_S']);
const TOO_LONG_S = '2147483.648';
const TOO_LONG_MS = '2147483648';
/** 100 years in seconds. */
const TOO_LONG_TO_KEEP_S = '3153600000';

const SERVICES = ['gateway', 'worker', 'dispatcher'];
const execute = promisify(execFile);

/** Returns the time settings of a service from its `--help`, each with a value above its bound. */
async function tooLong(service: string): Promise<Record<string, string>> {
  const { stdout: help } = await execute(process.execPath, [program(service), '--help']);
  const names = [...help.matchAll(/^ {2}([A-Z_]+_(?:S|MS)) /gm)].map(([, name = '']) => name);
  return Object.fromEntries(
    names.map((name) => [
      name,
      name.endsWith('_MS') ? TOO_LONG_MS : NO_TIMER.has(name) ? TOO_LONG_TO_KEEP_S : TOO_LONG_S,
    ]),
  );
}

/** Starts a service with settings that it must reject. Returns its exit code and its error output. */
async function rejected(service: string, env: Record<string, string>): Promise<{ code: unknown; stderr: string }> {
  const started = execute(process.execPath, [program(service)], {
    env: childEnvironment(env),
  });
  return started.then(
    ({ stderr }) => ({ code: 0, stderr }),
    ({ code, stderr }: { code: unknown; stderr: string }) => ({ code, stderr }),
  );
}

/** The services start side by side, because each of them starts twice. */
const starts = SERVICES.map(async (service) => {
  const env = await tooLong(service);
  return [service, { env, ...(await rejected(service, env)) }] as const;
});

test.each(SERVICES)('the %s rejects every time setting that exceeds its bound', async (service) => {
  const { env, code, stderr } = new Map(await Promise.all(starts)).get(service) ?? { env: {}, code: 0, stderr: '' };
  expect(Object.keys(env).length).toBeGreaterThan(3);
  expect(code).toBe(1);
  const refused = stderr
    .split('\n')
    .flatMap((line) => /^ {2}([A-Z_]+_(?:S|MS)) is wrong: expected .*/.exec(line)?.[1] ?? []);
  expect(refused.sort()).toEqual(Object.keys(env).sort());
  for (const line of stderr.split('\n').filter((text) => /_(S|MS) is wrong/.test(text)))
    expect(line).toMatch(/at most \d+|\d to \d+/);
});
