import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { Load } from './load.ts';
import { answers, delivered, failures, type Here, HOOK, patiently, runsOf } from './running.ts';

export function testBackups(here: Here): void {
  test('a backup made under load restores runs and deliveries after the loss of the volume', async () => {
    const file = join(here.stack.folder, 'backup.rdb');
    const load = new Load(here.stack.caller, HOOK);
    await load.succeeds(30);
    const before = runsOf(load.outcomes);
    await delivered(here.stack, before);
    await here.stack.script('compose:backup', [file]);
    await load.succeeds(5);
    expect(failures(await load.stop())).toEqual([]);

    await here.stack.compose(['stop', '--timeout', '60']);
    await here.stack.compose(['rm', '--force', 'redis']);
    await here.stack.docker(['volume', 'rm', here.stack.volume('redis-data')]);
    await here.stack.script('compose:restore', [file]);
    await answers(here.stack);
    expect(before.length).toBeGreaterThan(3);
    for (const id of before)
      expect(await here.stack.caller.lookUp(id)).toMatchObject({ status: 'succeeded', result: 'promised' });
    const [run = ''] = before;
    const attempts = async (): Promise<number> => {
      const { webhook } = await here.stack.caller.lookUp(run);
      return webhook?.state === 'delivered' ? webhook.attempts : 0;
    };
    const once = await attempts();
    const delivery = `msg_${run.replaceAll('-', '')}`;
    const again = await here.stack.caller.request(`/v4/demo/runs/${run}/deliveries/${delivery}/redeliver`);
    expect(again.status).toBe(202);
    await patiently(async () => (await attempts()) > once);
    // The restore does not overwrite existing data unless the operator asks for it.
    await expect(here.stack.script('compose:restore', [file])).rejects.toThrow();
    await here.stack.compose(['up', '--detach', '--no-build']);
    await answers(here.stack);
  });
}
