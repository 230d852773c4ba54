// docs/security/functions.md, "What a function can do to others": a function starts processes, or tries to end processes of others.
import { alive } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { until } from '../../client/until.ts';
import { appsReady, failed, type HostileStack, hostileStack } from './hostile-apps.ts';

let hostile: HostileStack;
beforeAll(async () => {
  hostile = await hostileStack();
});
afterAll(() => hostile.stack.stop());

const pidOf = async (app: string): Promise<number> => (await hostile.called(`${app}/pid`)).result as number;

/** Ends the replica of the app and every process that the replica started. */
const endApp = async (): Promise<void> => {
  expect(await hostile.called('hostile/ends')).toMatchObject(failed(502, 'replica_crashed'));
};

test('300 children of a function do not disturb other apps and end with the function’s process', async () => {
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

test('a child that holds the pipes of an ended process does not delay the outcome, and is ended', async () => {
  await hostile.beside(async () => {
    const { events } = await hostile.caller.stream('hostile/leaves_the_pipes');
    const child = Number((await events.next())?.replace('data: ', ''));
    expect((await events.rest()).at(-1)).toContain('"code":"replica_crashed"');
    expect(alive(child)).toBe(false);
  });
});

test('a daemon in a new session ends with its replica, and with its worker', async () => {
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

test('the parent of a replica is its keeper: a function that may kill the keeper ends only its own replica', async () => {
  await hostile.beside(async () => {
    const [keeper] = (await hostile.called('hostile/parents')).result as number[];
    const answer = await hostile.called('hostile/kills', { target: keeper });
    if (hostile.contained) expect(answer).toMatchObject({ httpStatus: 200, result: 'PermissionError' });
    else expect(answer).toMatchObject(failed(500, 'out_of_memory'));
  });
});

test('if the worker is contained, a function cannot end the worker, a service, Redis or the process of another app', async () => {
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

test('if the worker is contained, a signal to all processes reaches only the sender’s own processes', async () => {
  // Without containment the signal would reach this test.
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
