// docs/security/functions.md, "What a function can do to others": a custom runtime has the same bounds as functions.
import { alive } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
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

test('a contained custom runtime cannot end the worker or a service', async () => {
  if (!hostile.contained) return;
  await hostile.beside(async () => {
    for (const part of ['worker', 'gateway', 'redis'] as const)
      expect(await asked('kills', { target: hostile.stack.pid(part) })).toEqual({
        status: 200,
        value: 'PermissionError',
      });
  });
});

test('a daemon of a custom runtime ends with the runtime', async () => {
  await hostile.beside(async () => {
    const { value: daemon } = await asked('daemonizes');
    expect(alive(daemon as number)).toBe(true);
    expect(await asked('ends')).toMatchObject({ status: 502, value: { error: { code: 'replica_crashed' } } });
    expect(alive(daemon as number)).toBe(false);
  });
});

test('a custom runtime over its memory is ended as out_of_memory, and the next call reaches a new process', async () => {
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
