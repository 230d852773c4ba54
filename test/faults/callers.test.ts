// docs/operations/failures.md, "What a caller sees": its table, row by row, as callers of one gateway see it during a fault.
// A call that hangs until the fault is over would not end before the fault does. The test waits for that order, not for time.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { redisAddress } from '@inference-proxy/platform';
import { freePort, obtainRedis, redisUrlAt } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Caller } from '../client/caller.ts';
import type { EventReader } from '../client/event-reader.ts';
import { type Answer, errorOf } from '../client/http.ts';
import { fileSays, until } from '../client/until.ts';
import { page, tableRows, ticked } from '../documents/markdown.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { BadNetwork } from './bad-network.ts';
import { type Disk, openDisk } from './disk.ts';
import { SHORT_TIMES } from './place.ts';
import { ancestorsOf, processesIn, replicasOf } from './processes.ts';

let stack: TestStack;
let disk: Disk;
let network: BadNetwork;
let redis: Redis;
let caller: Caller;

beforeAll(async () => {
  disk = await openDisk();
  const port = await freePort();
  network = new BadNetwork(port);
  const proxyPort = await network.listen();
  stack = await startTestStack({
    redis: { port, binary: await disk.wrap(await obtainRedis(() => {})) },
    redisDir: disk.dir,
    env: (_, redisUrl) => ({
      ...SHORT_TIMES,
      WORKER_APPS: 'demo/streams',
      REDIS_URL: redisUrlAt(redisUrl, proxyPort),
    }),
  });
  redis = new Redis({ ...redisAddress(stack.redisUrl), maxRetriesPerRequest: null });
  redis.on('error', () => {});
  caller = new Caller(stack.port, stack.jwtSecret);
  await caller.ready('streams');
});
afterAll(async () => {
  redis?.disconnect();
  await stack?.stop();
  network?.close();
  await disk?.close();
});

/** One fault. It lasts from `begin` until the returned function is called. */
type Begin = () => Promise<() => unknown> | (() => unknown);

const bad = (trouble: Parameters<BadNetwork['set']>[0]): Begin => {
  return () => {
    network.set(trouble);
    return () => network.set({ is: 'none' });
  };
};

const cases: Record<string, Begin> = {
  'Redis cannot be reached': bad({ is: 'cut' }),
  'the network to Redis drops all packets': bad({ is: 'half-open' }),
  'Redis hangs': () => {
    stack.pause('redis');
    return () => stack.resume('redis');
  },
  'Redis cannot write its file': async () => {
    await disk.limit(stack.pid('redis'));
    // The gateway notices the disconnect at its next write.
    await until(async () =>
      redis.set('ip:probe', '1').then(
        () => false,
        () => true,
      ),
    );
    return () => disk.unlimit(stack.pid('redis'));
  },
  'Redis is out of memory': async () => {
    await redis.config('SET', 'maxmemory', '1mb');
    return () => redis.config('SET', 'maxmemory', '0');
  },
  'the replica is killed': async () => {
    const killed = await replicasOf(stack.pid('worker'), stack.appsDir);
    const keepers = (await Promise.all(killed.map(ancestorsOf))).map(([keeper]) => Number(keeper));
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    // Until the worker notices the death, it may give a call to the dying process.
    await until(async () => {
      const there = await processesIn(stack.appsDir);
      return !keepers.some((keeper) => there.includes(keeper));
    });
    return () => {};
  },
  'the worker is killed': async () => {
    await stack.kill('worker');
    return () => {};
  },
  'the gateway is killed': async () => {
    await stack.kill('gateway');
    return () => {};
  },
  'the dispatcher is killed': async () => {
    await stack.kill('dispatcher');
    return () => {};
  },
};

/** Returns the error code, `ok`, or `broken` for a connection that ended within its answer. Checks each error against the contract. */
async function outcomeOf(call: Promise<Answer>): Promise<{ is: string; runId: boolean }> {
  const answer = await call.catch(() => undefined);
  if (!answer) return { is: 'broken', runId: false };
  if (answer.status === 200) return { is: 'ok', runId: true };
  const { code, retryable } = errorOf(answer);
  if ([429, 503].includes(answer.status)) expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  expect(retryable).toBe(code !== 'out_of_memory');
  return { is: code, runId: 'run_id' in JSON.parse(answer.text) };
}

/** Returns the code of the error event, `ok`, or `broken`. @param items the items of a complete stream */
async function ends(events: EventReader, items: readonly string[]): Promise<string> {
  const seen: string[] = [];
  try {
    for (let event = await events.next(); event !== undefined; event = await events.next()) {
      const failure = /^event: error\ndata: (.*)$/.exec(event)?.[1];
      if (failure !== undefined) return errorOf({ text: failure }).code;
      if (event !== ': keep-alive') seen.push(event);
    }
  } catch {
    return 'broken';
  }
  // A stream that ends without an error event is complete.
  expect(seen).toEqual(items);
  return 'ok';
}

const rows = tableRows(page('docs/operations/failures.md'), /^What a caller sees/);

test('the table has these rows and no others', () => {
  expect(rows.map(([name]) => name)).toEqual(Object.keys(cases));
});

test.each(Object.entries(cases))('%s', async (name, begin) => {
  const [, fresh = '', accepted = '', stream = ''] = rows.find(([row]) => row === name) ?? [];
  const mark = (text: string): string => join(stack.marksDir, `${Object.keys(cases).indexOf(name)}-${text}`);
  // The stream's second item and the call's end wait for the same gate.
  const waiting = outcomeOf(caller.call('streams/waits', { gate: mark('1'), started: mark('started') }));
  const gated = await caller.stream('streams/stepped', { gate: mark('1') });
  expect(await gated.events.next()).toBe('data: begun');
  await fileSays(mark('started'));

  const over = await begin();
  const first = await outcomeOf(caller.call('streams/value', { value: 1 }));
  await over();
  expect(first).toEqual({ is: ticked(fresh)[0], runId: fresh.includes('`run_id`') || ticked(fresh)[0] === 'ok' });

  await writeFile(mark('1'), '');
  expect((await waiting).is).toBe(ticked(accepted)[0]);
  expect(await ends(gated.events, ['data: done'])).toBe(ticked(stream)[0]);
  await until(async () => (await outcomeOf(caller.call('streams/value', { value: 1 }))).is === 'ok');
});
