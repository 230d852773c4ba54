// docs/architecture.md, "Journeys": measures which files of the gateway and the store run during one call.
import { join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort, projectRoot } from '@inference-proxy/supervisor';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { type Receiver, type Request, receiver } from '../receiver/receivers.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { inspectorIn, RanFunctions } from './ran-functions.ts';
import { RanScripts } from './ran-scripts.ts';

/** A file counts if each of this many calls runs it. The intersection leaves out what a timer runs meanwhile. */
const CALLS = 3;
/** Time after an answer in which the gateway finishes its work for the call. */
const SETTLED_MS = 300;
/** The gateway's rarest rounds do not fall into a measurement. */
const NO_ROUNDS = { LEASE_MS: '3600000', ATTEND_MS: '1800000', REAP_MS: '1800000' };

const GATEWAY = 'apps/gateway/src/';
const STORE = 'packages/store/src/';
/** Runs in each periodic task. */
const ROUNDS = join(STORE, 'maintenance', 'rounds.ts');

export const JOURNEYS = ['streamed call', 'resume', 'promised call with webhook', 'call of a web server'] as const;
export type Journey = (typeof JOURNEYS)[number];

/** The files that run during one call, as paths from the repository's root. */
export interface JourneyFiles {
  readonly gateway: readonly string[];
  readonly store: readonly string[];
  readonly lua: readonly string[];
}

type Steps = Record<Journey, () => Promise<void>>;

/** Starts a stack and measures these journeys after calls of all kinds. */
export async function journeyFiles<Measured extends Journey>(
  journeys: readonly Measured[],
): Promise<Record<Measured, JourneyFiles>> {
  const root = projectRoot();
  const hook = await receiver(() => ({ status: 204 }));
  const port = await freePort();
  const stack = await startTestStack({
    apps: join(root, 'bench', 'apps'),
    redis: { port },
    denials: 'expected',
    env: (part, redisUrl) => ({
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      ...(part === 'gateway' && {
        ...NO_ROUNDS,
        // The default of a gateway. The stack would allow all origins.
        CORS_ORIGINS: '',
        NODE_OPTIONS: '--inspect=127.0.0.1:0',
        // Only the gateway connects by TCP. The address of a connection thus identifies the scripts of the gateway.
        REDIS_URL: redisUrl.replace(/^redis\+unix:\/\/([^@]*)@.*$/, `redis://$1@127.0.0.1:${port}`),
      }),
    }),
  });
  const functions = await RanFunctions.start(await until(() => inspectorIn(stack.logs())));
  const scripts = await RanScripts.start(stack.redisUrl, join(root, STORE));
  try {
    const steps = await stepsOf(stack, hook);
    for (let round = 0; round < CALLS; round++) for (const step of Object.values(steps)) await step();
    const measured = {} as Record<Measured, JourneyFiles>;
    for (const journey of journeys) {
      const ran = await always(() =>
        besideRounds(join(root, ROUNDS), async () => {
          await functions.take();
          await settled(steps[journey]);
          return functions.take();
        }),
      );
      const lua = await always(async () => {
        await scripts.forget();
        await settled(steps[journey]);
        return scripts.take();
      });
      const below = (files: ReadonlySet<string>, folder: string): string[] =>
        [...files]
          .map((file) => relative(root, file))
          .filter((file) => file.startsWith(folder))
          .sort();
      measured[journey] = { gateway: below(ran, GATEWAY), store: below(ran, STORE), lua: below(lua, STORE) };
    }
    return measured;
  } finally {
    functions.close();
    scripts.close();
    await stack.stop();
    await hook.close();
  }
}

async function stepsOf(stack: TestStack, hook: Receiver & { requests: Request[] }): Promise<Steps> {
  const caller = new Caller(stack.port, stack.jwtSecret);
  await Promise.all([caller.ready('bench'), caller.ready('served')]);
  const kept = await caller.call('bench/items', { n: 3 }, { query: '?async=true' });
  const runId = String(kept.headers['x-request-id']);
  await caller.ended(runId);
  return {
    'streamed call': async () => {
      const { events } = await caller.stream('bench/ticks', { n: 3, every_s: 0.05 });
      await events.rest();
    },
    resume: async () => {
      const { events } = await caller.takeUp(runId, 1);
      await events.rest();
    },
    'promised call with webhook': async () => {
      const { headers } = await caller.call('bench/echo', { a: 1 }, { query: `?webhookEndpoint=${hook.url}` });
      await until(() => hook.requests.some((request) => request.headers['x-request-id'] === headers['x-request-id']));
    },
    'call of a web server': async () => {
      await caller.request('/v4/demo/served/hello', { method: 'GET' });
    },
  };
}

async function settled(step: () => Promise<void>): Promise<void> {
  await step();
  await setTimeout(SETTLED_MS);
}

/** Repeats a measurement until no round of a periodic task falls into the measurement. */
async function besideRounds(rounds: string, measure: () => Promise<ReadonlySet<string>>): Promise<ReadonlySet<string>> {
  for (;;) {
    const files = await measure();
    if (!files.has(rounds)) return files;
  }
}

/** Returns the files of every call. */
async function always(measure: () => Promise<ReadonlySet<string>>): Promise<ReadonlySet<string>> {
  const files = new Set(await measure());
  for (let call = 1; call < CALLS; call++) {
    const again = await measure();
    for (const file of files) if (!again.has(file)) files.delete(file);
  }
  return files;
}
