// Contract 7, "Versions": roll-outs over a stack with two gateways and two workers, while parts die, hang or miss announcements.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { redisAddress } from '@inference-proxy/platform';
import { ONE_OF_EACH } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Deployer } from '../client/deployer.ts';
import { until } from '../client/until.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

/** The time limit of roll-outs that begin at the second gateway. */
const SHORT_S = 4;

let stack: TestStack;
let deployer: Deployer;
let redis: Redis;
let empty: string;
beforeAll(async () => {
  empty = await mkdtemp(join(tmpdir(), 'no-apps-'));
  stack = await startTestStack({
    apps: empty,
    scale: { ...ONE_OF_EACH, gateway: 2, worker: 2 },
    // The workers may not subscribe in one of the tests.
    denials: 'expected',
    env: (part) => ({
      ROLL_OUT_TIMEOUT_S: part === 'gateway-2' ? String(SHORT_S) : '110',
      LEASE_MS: '3000',
      LEASE_RENEW_MS: '500',
      DEPLOYMENTS_RESCAN_MS: '500',
    }),
  });
  deployer = new Deployer(stack.port, stack.jwtSecret, 'acme');
  redis = new Redis({ ...redisAddress(stack.redisUrl), maxRetriesPerRequest: null });
  redis.on('error', () => {});
});
afterAll(async () => {
  redis?.disconnect();
  await stack?.stop();
  await rm(empty, { recursive: true });
});

const saying = (text: string, before = ''): Record<string, string> => ({
  'main.py': `import os, time\n${before}\ndef say():\n    return ${JSON.stringify(text)}\n`,
});

/** A version whose processes wait at their start until `open` is called. */
class Gate {
  readonly #folder: string;

  constructor(name: string) {
    this.#folder = join(stack.marksDir, name);
  }

  async close(): Promise<void> {
    await mkdir(this.#folder);
  }

  files(text: string): Record<string, string> {
    const folder = JSON.stringify(this.#folder);
    return saying(
      text,
      `open(os.path.join(${folder}, str(os.getpid())), "w").close()\nwhile not os.path.exists(os.path.join(${folder}, "open")):\n    time.sleep(0.02)`,
    );
  }

  /** Resolves when this number of processes waits. */
  async waited(count: number): Promise<void> {
    await until(async () => (await readdir(this.#folder)).length >= count);
  }

  open(): Promise<void> {
    return writeFile(join(this.#folder, 'open'), '');
  }
}

const resultOf = ({ text }: { text: string }): unknown => (JSON.parse(text) as { result: unknown }).result;
const said = async (app: string): Promise<unknown> => resultOf(await deployer.call(app, 'say'));
const serving = (): Promise<true> => until(async () => (await deployer.raw('GET', '/apps')).status === 200);

async function activeVersion(app: string, text: string): Promise<string> {
  const { version } = await deployer.deploy(app, saying(text));
  expect(await deployer.settled(app, version)).toMatchObject({ state: 'active' });
  return version;
}

/** Calls an app until `stop`: one caller waits for each answer, the other for the result of each promised run. */
function callsOf(app: string): { stop(): Promise<{ answers: string[]; promised: unknown[] }> } {
  let running = true;
  const answers: string[] = [];
  const promised: unknown[] = [];
  const caller = async (): Promise<void> => {
    while (running) {
      const answer = await deployer.call(app, 'say');
      const { error } = JSON.parse(answer.text) as { error?: { code: string } };
      answers.push(error?.code ?? String(resultOf(answer)));
    }
  };
  const sender = async (): Promise<void> => {
    while (running) {
      const { text } = await deployer.call(app, 'say', {}, { prefer: 'respond-async' });
      const ended = await deployer.caller.ended((JSON.parse(text) as { run_id: string }).run_id);
      promised.push(ended.result ?? ended.error);
    }
  };
  const both = [caller(), sender()];
  return {
    async stop() {
      running = false;
      await Promise.all(both);
      return { answers, promised };
    },
  };
}

test('a worker that is killed in a roll-out takes part again after its restart, and every promised run succeeds', async () => {
  await activeVersion('killed', 'old');
  const gate = new Gate('killed');
  await gate.close();
  const calls = callsOf('killed');
  const { version } = await deployer.deploy('killed', gate.files('new'));
  await gate.waited(2);
  await stack.kill('worker-1');
  await gate.waited(3);
  await gate.open();
  expect(await deployer.settled('killed', version)).toMatchObject({ state: 'active' });
  await until(async () => (await said('killed')) === 'new');
  const { answers, promised } = await calls.stop();
  expect(promised.length).toBeGreaterThan(0);
  expect(new Set(promised)).toEqual(new Set(['old', 'new']));
  // A call that the killed worker was executing may end as `worker_lost`.
  expect(answers.filter((one) => one !== 'worker_lost').filter((one) => one !== 'old' && one !== 'new')).toEqual([]);
  expect(answers.filter((one) => one === 'worker_lost').length).toBeLessThanOrEqual(1);
});

test('a roll-out does not wait for a worker that stays dead longer than its lease', async () => {
  await activeVersion('frozen', 'old');
  const gate = new Gate('frozen');
  await gate.close();
  const { version } = await deployer.deploy('frozen', gate.files('new'));
  await gate.waited(2);
  stack.pause('worker-1');
  try {
    await gate.open();
    expect(await deployer.settled('frozen', version)).toMatchObject({ state: 'active' });
    expect(await said('frozen')).toBe('new');
  } finally {
    stack.resume('worker-1');
  }
});

test('a version that is not ready on one of two workers in time is undone, and its reason names the worker', async () => {
  await activeVersion('stuck', 'old');
  const [, port = 0] = stack.gatewayPorts();
  const short = new Deployer(port, stack.jwtSecret, 'acme');
  const hang = 'if "worker-2" in os.path.abspath(__file__):\n    time.sleep(600)';
  const calls = callsOf('stuck');
  const { version } = await short.deploy('stuck', saying('new', hang));
  const undone = await deployer.settled('stuck', version);
  expect(undone).toMatchObject({ state: 'failed', activations: [] });
  expect(undone.reason).toMatch(/^The worker \S+ was not ready in time; see its log\.$/);
  const { answers, promised } = await calls.stop();
  expect([new Set(answers), new Set(promised)]).toEqual([new Set(['old']), new Set(['old'])]);
});

test('workers that receive no announcement find a version by their own look, and start it', async () => {
  const cut = async (rule: string): Promise<void> => {
    await redis.call('ACL', 'SETUSER', 'worker', rule);
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub', 'USER', 'worker');
  };
  await activeVersion('unheard', 'old');
  await cut('-ssubscribe');
  try {
    const { version } = await deployer.deploy('unheard', saying('new'));
    expect(await deployer.settled('unheard', version)).toMatchObject({ state: 'active' });
    const listeners = String(await redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
    expect(listeners).not.toContain('user=worker');
  } finally {
    // The runs are announced on the same connection.
    await cut('+ssubscribe');
  }
  expect(await said('unheard')).toBe('new');
});

test('a Redis that is killed during a roll-out keeps the roll-out, which ends when the workers report again', async () => {
  await activeVersion('durable', 'old');
  const gate = new Gate('durable');
  await gate.close();
  const { version } = await deployer.deploy('durable', gate.files('new'));
  await gate.waited(2);
  await stack.kill('redis');
  // A gateway that has not reconnected yet rejects calls.
  expect(await until(() => said('durable'))).toBe('old');
  await gate.open();
  expect(await deployer.settled('durable', version)).toMatchObject({ state: 'active' });
  expect(await said('durable')).toBe('new');
});

test('a deployment to a Redis that stands still returns 503, and its repetition succeeds', async () => {
  await activeVersion('halted', 'old');
  stack.pause('redis');
  const refused = await deployer.deploy('halted', saying('new')).finally(() => stack.resume('redis'));
  expect(refused).toMatchObject({ status: 503, error: { code: 'unavailable', retryable: true } });
  await serving();
  const { version } = await deployer.deploy('halted', saying('new'));
  expect(await deployer.settled('halted', version)).toMatchObject({ state: 'active' });
  expect(await said('halted')).toBe('new');
});
