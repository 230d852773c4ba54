// docs/security.md, "What a function can do to others": the processes it starts, and those it would end.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { until } from '../../client/until.ts';
import { alive } from '../../stack/processes.ts';
import { appsReady, failed, type HostileStack, hostileStack } from './hostile-apps.ts';

let hostile: HostileStack;
beforeAll(async () => {
  hostile = await hostileStack();
});
afterAll(() => hostile.stack.stop());

const pidOf = async (app: string): Promise<number> => (await hostile.called(`${app}/pid`)).result as number;

/** Ends the process of the app, and with it what it had started. */
const endApp = async (): Promise<void> => {
  expect(await hostile.called('hostile/ends')).toMatchObject(failed(502, 'replica_crashed'));
};

test('a burst of 300 children costs the others nothing, and they end with the process that started them', async () => {
  await hostile.beside(async () => {
    const { httpStatus, result } = await hostile.called('hostile/bursts', { count: 300 });
    expect(httpStatus).toBe(200);
    const children = result as number[];
    expect(children).toHaveLength(300);
    expect(children.every(alive)).toBe(true);
    await endApp();
    expect(children.filter(alive)).toEqual([]);
  });
});

test('a child that holds the pipes of a process that has ended does not hold up its end, and ends too', async () => {
  await hostile.beside(async () => {
    const { events } = await hostile.caller.stream('hostile/leaves_the_pipes');
    const child = Number((await events.next())?.replace('data: ', ''));
    expect((await events.rest()).at(-1)).toContain('"code":"replica_crashed"');
    expect(alive(child)).toBe(false);
  });
});

test('a daemon in a session of its own ends with its process, and with its worker', async () => {
  await hostile.beside(async () => {
    const { result: daemon } = await hostile.called('hostile/daemonizes');
    expect(alive(daemon as number)).toBe(true);
    await endApp();
    expect(alive(daemon as number)).toBe(false);
  });
  const { result: daemon } = await hostile.called('hostile/daemonizes');
  expect(alive(daemon as number)).toBe(true);
  await hostile.stack.kill('worker');
  await until(() => !alive(daemon as number));
  await appsReady(hostile.stack);
});

test('the process above a function is its keeper: to end it costs the function’s own process, where it can be done', async () => {
  await hostile.beside(async () => {
    const [keeper] = (await hostile.called('hostile/parents')).result as number[];
    const answer = await hostile.called('hostile/kills', { target: keeper });
    if (hostile.contained) expect(answer).toMatchObject({ httpStatus: 200, result: 'PermissionError' });
    else expect(answer).toMatchObject(failed(500, 'out_of_memory'));
  });
});

test('neither the worker nor Redis nor another app’s process can be ended, where the system keeps signals to their sender', async () => {
  const other = await pidOf('beside');
  const [, worker] = (await hostile.called('hostile/parents')).result as [number, number];
  expect(worker).toBe(hostile.stack.pid('worker'));
  if (!hostile.contained) {
    expect(await hostile.called('hostile/kills', { target: worker })).toMatchObject(failed(502, 'worker_lost'));
    await appsReady(hostile.stack);
    return;
  }
  await hostile.beside(async () => {
    for (const target of [worker, other, hostile.stack.pid('gateway'), hostile.stack.pid('redis')])
      for (const number of [9, 15, 19])
        expect(await hostile.called('hostile/kills', { target, number })).toMatchObject({
          httpStatus: 200,
          result: 'PermissionError',
        });
  });
  expect(await pidOf('beside')).toBe(other);
});

test('a signal to everybody reaches the sender’s own processes only, where the system keeps signals to their sender', async () => {
  // Elsewhere it would reach this test.
  if (!hostile.contained) return;
  const other = await pidOf('beside');
  await hostile.beside(async () => {
    const { result: child } = await hostile.called('hostile/bursts', { count: 1 });
    await hostile.called('hostile/kills', { target: -1 });
    expect((child as number[]).filter(alive)).toEqual([]);
    await endApp();
  });
  expect(await pidOf('beside')).toBe(other);
});
