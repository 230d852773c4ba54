// docs/operations/scale.md: containers that die, stop or start under load.
import { expect, test } from '@jest/globals';
import { type CallOutcome, Load } from './load.ts';
import {
  ALL,
  delivered,
  failures,
  type Here,
  HOOK,
  patiently,
  runsOf,
  SCALE,
  saidOf,
  say,
  stoodStill,
} from './running.ts';

export function testUnderLoad(here: Here): void {
  test('if one container of each service is killed under load, only its open calls fail, and every promised run is delivered', async () => {
    const load = new Load(here.stack.caller, HOOK);
    await load.succeeds(20);
    /** For each service, the times before and after the kill of its container. */
    const killed: Partial<Record<'gateway' | 'worker' | 'dispatcher', readonly [number, number]>> = {};
    for (const service of ['gateway', 'worker', 'dispatcher'] as const) {
      const [victim = ''] = await here.stack.containers(service);
      const before = performance.now();
      await here.stack.docker(['kill', victim]);
      killed[service] = [before, performance.now()];
      await load.succeeds(40);
    }
    const outcomes = await load.stop();
    const during = (service: 'gateway' | 'worker', { beganAt, endedAt }: CallOutcome): boolean => {
      const [from, to] = killed[service] as readonly [number, number];
      return beganAt < to && endedAt > from;
    };
    const failed = failures(outcomes);
    say(`killed one of each under load: ${outcomes.length} calls, failed: ${saidOf(failed)}`);
    // Connections of the killed gateway break, or the proxy answers if no head was sent. Runs of the killed worker are lost. No later call fails.
    const allowed = (one: CallOutcome): boolean =>
      (during('gateway', one) && ['unavailable', 'broken'].includes(one.is)) ||
      (during('worker', one) && one.is === 'worker_lost') ||
      stoodStill(one);
    expect(failed.filter((one) => !allowed(one))).toEqual([]);
    const promised = runsOf(outcomes);
    expect(promised.length).toBeGreaterThan(10);
    const printed = await delivered(here.stack, promised);
    for (const id of promised)
      expect(printed.split('\n').filter((line) => line.startsWith('verified') && line.includes(id))).toHaveLength(1);
    for (const service of ['gateway', 'worker', 'dispatcher'] as const)
      expect(await here.stack.containers(service)).toHaveLength(SCALE[service] - 1);
  });

  test('after a scale-up the proxy finds the new gateways without a restart', async () => {
    await here.stack.up(ALL);
    await patiently(async () => {
      await Promise.all(Array.from({ length: 12 }, () => here.stack.caller.call('streams/value', { value: 1 })));
      const gateways = await here.stack.containers('gateway');
      const lines = await Promise.all(gateways.map((id) => here.stack.docker(['logs', '--since', '20s', id])));
      return gateways.length === SCALE.gateway && lines.every((text) => text.includes('"function":"value"'));
    }, 1000);
  });

  test('one container of each service, stopped in order under load, fails no call', async () => {
    const load = new Load(here.stack.caller, HOOK);
    await load.succeeds(10);
    for (const service of ['gateway', 'worker', 'dispatcher'] as const) {
      const [one = ''] = await here.stack.containers(service);
      await here.stack.docker(['stop', '--time', '60', one]);
      expect((await here.stack.docker(['inspect', '--format', '{{.State.ExitCode}}', one])).trim()).toBe('0');
      await load.succeeds(20);
    }
    const outcomes = await load.stop();
    say(`stopped one of each under load: ${outcomes.length} calls, failed: ${saidOf(failures(outcomes))}`);
    expect(failures(outcomes)).toEqual([]);
    await delivered(here.stack, runsOf(outcomes));
    await here.stack.up(ALL);
  });

  test('a gateway that is restarted under load fails no call', async () => {
    const load = new Load(here.stack.caller, HOOK);
    await load.succeeds(10);
    for (const gateway of await here.stack.containers('gateway')) {
      await here.stack.docker(['restart', '--time', '60', gateway]);
      // Like `npm run compose:upgrade`: restarts the next gateway only when this gateway is ready again.
      await patiently(() =>
        here.stack.docker(['exec', gateway, 'node', 'deploy/healthcheck.mjs', 'readyz']).then(
          () => true,
          () => false,
        ),
      );
      await load.succeeds(20);
    }
    const outcomes = await load.stop();
    say(`restarted each gateway under load: ${outcomes.length} calls, failed: ${saidOf(failures(outcomes))}`);
    expect(failures(outcomes)).toEqual([]);
  });
}
