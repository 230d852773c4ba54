// docs/security/functions.md, "What a function can do to others": a function closes, changes, reads and writes resources of others.
import { cp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { alive, projectRoot } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { until } from '../../client/until.ts';
import { failed, type HostileStack, hostileStack } from './hostile-apps.ts';

let hostile: HostileStack;
beforeAll(async () => {
  hostile = await hostileStack();
});
afterAll(() => hostile.stack.stop());

const pidOf = async (app: string): Promise<number> => (await hostile.called(`${app}/pid`)).result as number;
const dataDir = (): string => join(hostile.stack.appsDir, '..', 'data');

test.each(['closes_one', 'scribbles_one'])(
  'fd 3 is not open in a replica: a function that uses it (%s) gets an OSError',
  async (fn) => {
    await hostile.beside(async () => {
      expect(await hostile.called(`hostile/${fn}`, { fd: 3 })).toMatchObject(failed(500, 'function_error', 'OSError'));
    });
  },
);

test.each([['closes'], ['scribbles']])(
  'a function that %s every file descriptor ends its process, and the next call runs in a new process',
  async (fn) => {
    await hostile.beside(async () => {
      const before = await pidOf('hostile');
      const { events } = await hostile.caller.stream(`hostile/${fn}`, { first: 3, last: 300 });
      expect(await events.next()).toBe('data: before');
      expect((await events.rest()).at(-1)).toContain('"code":"replica_crashed"');
      expect(await pidOf('hostile')).not.toBe(before);
      expect(alive(before)).toBe(false);
    });
  },
);

test('the process of a function that ignores all signals is killed after the grace time', async () => {
  await hostile.beside(async () => {
    const { events, runId } = await hostile.caller.stream('alone/deaf');
    const before = Number((await events.next())?.replace('data: ', ''));
    await hostile.caller.cancel(runId);
    expect((await events.rest()).at(-1)).toContain('"code":"cancelled"');
    expect(alive(before)).toBe(false);
    expect(await pidOf('alone')).not.toBe(before);
  });
});

test('an alarm without a handler ends the process of the function that set the alarm', async () => {
  await hostile.beside(async () => {
    const ended = await hostile.called('alone/sets_an_alarm');
    expect(ended).toMatchObject(failed(502, 'replica_crashed'));
    expect(ended.error?.message).toContain('SIGALRM');
  });
});

test('the next run does not inherit the signal handlers and the trace function of the run before', async () => {
  await hostile.beside(async () => {
    expect((await hostile.called('alone/leaves_signals_changed')).httpStatus).toBe(200);
    await hostile.called('alone/traces');
    expect(await hostile.called('alone/is_traced')).toMatchObject({ httpStatus: 200, result: false });
    const before = await pidOf('alone');
    const { events, runId } = await hostile.caller.stream('alone/sleeps');
    await events.next();
    await hostile.caller.cancel(runId);
    expect((await events.rest()).at(-1)).toContain('"code":"cancelled"');
    expect(await pidOf('alone')).toBe(before);
  });
});

test('a function changes the working folder for the runs of its app only', async () => {
  await hostile.beside(async () => {
    expect((await hostile.called('hostile/goes_to', { folder: '/' })).httpStatus).toBe(200);
    expect(await hostile.called('hostile/where')).toMatchObject({ httpStatus: 200, result: '/' });
  });
});

test('a function cannot listen on a port of the service', async () => {
  await hostile.beside(async () => {
    const { port } = hostile.stack;
    expect(await hostile.called('hostile/listens', { port })).toMatchObject(failed(500, 'function_error', 'OSError'));
  });
});

test('the environment of a function has no variable of the service, and the worker’s has no key', async () => {
  const { result } = await hostile.called('hostile/environment');
  const names = Object.keys(result as object);
  const worker = await readFile(`/proc/${hostile.stack.pid('worker')}/environ`, 'utf8');
  for (const key of ['JWT_SECRET', 'SECRETS_KEY']) expect(worker).not.toContain(`${key}=`);
  for (const name of ['REDIS_URL', 'JWT_SECRET', 'SECRETS_KEY', 'DEPLOYMENTS_DIR']) expect(names).not.toContain(name);
});

test('if the worker is contained, a function cannot read the environment of a service', async () => {
  await hostile.beside(async () => {
    for (const part of ['worker', 'gateway'] as const) {
      const read = await hostile.called('hostile/reads', { path: `/proc/${hostile.stack.pid(part)}/environ` });
      if (hostile.contained) expect(read).toMatchObject(failed(500, 'function_error', 'PermissionError'));
      else expect(read.result).toContain('REDIS_URL=');
    }
  });
});

test('not contained: a function reads every file that the worker’s user may read, also of another project', async () => {
  const path = join(hostile.stack.appsDir, 'other', 'secretive', 'main.py');
  expect((await hostile.called('hostile/reads', { path })).result).toContain('between us');
});

test('an app that deletes its folder is not found until the folder is back; other apps are served', async () => {
  await hostile.beside(async () => {
    expect((await hostile.called('hostile/deletes_itself')).httpStatus).toBe(200);
    await until(async () => (await hostile.called('hostile/pid')).httpStatus === 404);
    const own = join('demo', 'hostile');
    await cp(join(projectRoot(), 'test/hostile/functions/apps', own), join(hostile.stack.appsDir, own), {
      recursive: true,
    });
    await hostile.caller.ready('hostile');
    expect((await hostile.called('hostile/pid')).httpStatus).toBe(200);
  });
});

test('not contained: a function empties the files of Redis; Redis keeps running and cannot read the files at its next start', async () => {
  const { run_id } = await hostile.called('beside/value', { n: 1 });
  const redisDir = join(dataDir(), 'redis');
  // Redis rewrites its file once after its start.
  const files = await until(async () => {
    const names = (await readdir(redisDir, { recursive: true })).filter((name) => name.endsWith('.incr.aof'));
    return names.length === 1 && !names[0]?.endsWith('.1.incr.aof') && names;
  });
  await hostile.beside(async () => {
    for (const name of files)
      expect((await hostile.called('hostile/writes', { path: join(redisDir, name), text: '' })).httpStatus).toBe(200);
  });
  expect((await hostile.caller.lookUp(run_id)).status).toBe('succeeded');
  process.kill(hostile.stack.pid('redis'), 'SIGKILL');
  await until(() => hostile.stack.logs().includes('Redis cannot read its file'));
  await rm(join(redisDir, 'appendonlydir'), { recursive: true });
  await until(async () => (await hostile.called('beside/value', { n: 2 })).httpStatus === 200);
  expect((await hostile.caller.request(`/v4/demo/runs/${run_id}`, { method: 'GET' })).status).toBe(404);
});
