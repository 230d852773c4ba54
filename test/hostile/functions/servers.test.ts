// docs/security.md, "What a function can do to others": an app's own web server is held as functions are.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { alive } from '../../stack/processes.ts';
import { type HostileStack, hostileStack } from './hostile-apps.ts';

let hostile: HostileStack;
beforeAll(async () => {
  hostile = await hostileStack();
});
afterAll(() => hostile.stack.stop());

async function asked(what: string, body: object = {}): Promise<{ status: number; value: unknown }> {
  const { status, text } = await hostile.caller.call(`server/${what}`, body);
  return { status, value: JSON.parse(text) };
}

test('it can end neither the worker nor a service, where the system keeps signals to their sender', async () => {
  if (!hostile.contained) return;
  await hostile.beside(async () => {
    for (const part of ['worker', 'gateway', 'redis'] as const)
      expect(await asked('kills', { target: hostile.stack.pid(part) })).toEqual({
        status: 200,
        value: 'PermissionError',
      });
  });
});

test('a daemon that it leaves ends with it', async () => {
  await hostile.beside(async () => {
    const { value: daemon } = await asked('daemonizes');
    expect(alive(daemon as number)).toBe(true);
    expect(await asked('ends')).toMatchObject({ status: 502, value: { error: { code: 'replica_crashed' } } });
    expect(alive(daemon as number)).toBe(false);
  });
});

test('past its memory it is ended as out_of_memory, and the next call has another', async () => {
  await hostile.beside(async () => {
    const { value: before } = await asked('pid');
    expect(await asked('grows', { mebibytes: 256 })).toMatchObject({
      status: 500,
      value: { error: { code: 'out_of_memory' } },
    });
    const { status, value: after } = await asked('pid');
    expect(status).toBe(200);
    expect(after).not.toBe(before);
  });
});
