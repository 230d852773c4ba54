// Contract 6: every time setting has an upper bound, because Node fires a timer immediately if its time is above 2^31 - 1 ms.
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '..', '..');
const program = (service: string): string => join(root, 'apps', service, 'dist', 'bundle', 'main.js');

/** Only the store uses these times, so the limit of timers does not apply. */
const NO_TIMER = new Set(['RUN_RETENTION_S', 'SYNC_RUN_RETENTION_S', 'REVOCATION_RETENTION_S']);
const TOO_LONG_S = '2147483.648';
const TOO_LONG_MS = '2147483648';
/** 100 years in seconds. */
const TOO_LONG_TO_KEEP_S = '3153600000';

/** Returns the time settings of a service from its `--help`, each with a value above its bound. */
function tooLong(service: string): Record<string, string> {
  const help = execFileSync(process.execPath, [program(service), '--help'], { encoding: 'utf8' });
  const names = [...help.matchAll(/^ {2}([A-Z_]+_(?:S|MS)) /gm)].map(([, name = '']) => name);
  return Object.fromEntries(
    names.map((name) => [
      name,
      name.endsWith('_MS') ? TOO_LONG_MS : NO_TIMER.has(name) ? TOO_LONG_TO_KEEP_S : TOO_LONG_S,
    ]),
  );
}

test.each(['gateway', 'worker', 'dispatcher'])(
  'the %s rejects every time setting that exceeds its bound',
  (service) => {
    const env = tooLong(service);
    expect(Object.keys(env).length).toBeGreaterThan(3);
    const { status, stderr } = spawnSync(process.execPath, [program(service)], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, ...env },
    });
    expect(status).toBe(1);
    const refused = stderr
      .split('\n')
      .flatMap((line) => /^ {2}([A-Z_]+_(?:S|MS)) is wrong: expected .*/.exec(line)?.[1] ?? []);
    expect(refused.sort()).toEqual(Object.keys(env).sort());
    for (const line of stderr.split('\n').filter((text) => /_(S|MS) is wrong/.test(text)))
      expect(line).toMatch(/at most \d+|\d to \d+/);
  },
);
