import { expect, test } from '@jest/globals';
import { addresses, contained, reached } from './inside.ts';
import { Load } from './load.ts';
import {
  ALL,
  answers,
  DASHBOARD_TOKEN,
  delivered,
  failures,
  type Here,
  HOOK,
  runsOf,
  SCALE,
  saidOf,
  say,
  stoodStill,
} from './running.ts';

export function testUpgrades(here: Here): void {
  test('a custom image serves an app with its dependencies', async () => {
    await here.stack.build('acme-worker');
    await here.stack.up([...ALL, 'acme-worker']);
    await answers(here.stack);
    await here.stack.acme.ready('report');
    const table = await here.stack.acme.call('report/table', { rows: [['Ada', 36]], headers: ['name', 'age'] });
    expect(JSON.parse(table.text)).toMatchObject({
      result: '| name   |   age |\n|--------|-------|\n| Ada    |    36 |',
    });
    const { events } = await here.stack.acme.stream('report/banner', { text: 'hi' });
    expect((await events.rest()).join('\n')).toContain('|_| |_|_|');
    // Settings and limits are those of the service's workers.
    const [own = ''] = await here.stack.containers('acme-worker');
    const [worker = ''] = await here.stack.containers('worker');
    expect(await contained(here.stack, own)).toEqual(await contained(here.stack, worker));
    expect(await here.stack.docker(['exec', own, 'printenv', 'RUN_LOG_MAX_BYTES'])).toBe('100000\n');
    const [gateway = ''] = await here.stack.containers('gateway');
    const operations = (await addresses(here.stack, gateway)).map((address) => `${address} 9464`);
    expect(await reached(here.stack, own, ['redis 6379', ...operations])).toEqual(['redis 6379']);
  });

  test('wrong settings end `up` and the upgrade with an error, and running containers continue', async () => {
    const before = await here.stack.containers('dispatcher');
    await here.stack.set({ OPERATIONS_TOKEN: 'too-short' });
    await expect(here.stack.up(ALL)).rejects.toThrow();
    await expect(here.stack.script('compose:upgrade', ['--no-build'])).rejects.toThrow();
    const log = await here.stack.compose(['logs', '--no-color', 'dispatcher-settings']);
    expect(log).toMatch(/OPERATIONS_TOKEN is wrong: .*at least 16 characters/);
    expect(await here.stack.containers('dispatcher')).toEqual(before);
    await here.stack.set({ OPERATIONS_TOKEN: DASHBOARD_TOKEN });
  });

  test('`npm run compose:upgrade` applies new settings under load without a failed call, and `exec gateway token` works afterwards', async () => {
    await here.stack.set({ LOG_LEVEL: 'debug', DISPATCHERS: '1' });
    const load = new Load(here.stack.caller, HOOK);
    await load.succeeds(10);
    await here.stack.script('compose:upgrade', ['--no-build']);
    await load.succeeds(20);
    const outcomes = await load.stop();
    say(`upgraded under load: ${outcomes.length} calls, failed: ${saidOf(failures(outcomes))}`);
    expect(failures(outcomes).filter((one) => !stoodStill(one))).toEqual([]);
    await delivered(here.stack, runsOf(outcomes));
    for (const [service, count] of Object.entries({ ...SCALE, dispatcher: 1, 'acme-worker': 1, 'gateway-spare': 0 })) {
      const ids = await here.stack.containers(service as keyof typeof SCALE);
      expect([service, ids.length]).toEqual([service, count]);
      for (const id of ids) expect(await here.stack.docker(['exec', id, 'printenv', 'LOG_LEVEL'])).toBe('debug\n');
    }
    const token = (await here.stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo'])).trim();
    const headers = { authorization: `Bearer ${token}` };
    expect((await here.stack.caller.call('streams/value', { value: 1 }, { headers })).status).toBe(200);
  });
}
