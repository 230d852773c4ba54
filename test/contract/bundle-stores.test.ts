// Contract 7: deployments over a bundle store in S3 that is sometimes away. Each worker serves some apps only, and has a small cache.
// Without an S3-compatible server, the store is a folder.
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ONE_OF_EACH } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Deployer } from '../client/deployer.ts';
import { startS3Server } from '../stack/s3-server.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';

/** A bundle store that a test can take away. */
interface Place {
  readonly env: Record<string, string>;
  takeAway(): Promise<void>;
  bringBack(): Promise<void>;
  stop(): Promise<void>;
}

/** Passes connections on. All connections break when the store is taken away. */
class Wire {
  readonly #to: number;
  readonly #open = new Set<Socket>();
  #server: Server | undefined;
  port = 0;

  constructor(to: number) {
    this.#to = to;
  }

  async listen(): Promise<void> {
    this.#server = createServer((caller) => {
      const store = connect({ port: this.#to, host: '127.0.0.1' });
      for (const socket of [caller, store]) this.#open.add(socket.on('error', () => {}));
      caller.pipe(store).pipe(caller);
    }).listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.port = (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.#open.clear();
    if (!this.#server) return;
    this.#server.close();
    await once(this.#server, 'close');
    this.#server = undefined;
  }
}

async function bundlePlace(root: string): Promise<Place> {
  const s3 = await startS3Server();
  if ('missing' in s3) {
    process.stderr.write(`The bundles of these tests are in a folder, not in S3: ${s3.missing}\n`);
    const [folder, away] = [join(root, 'bundles'), join(root, 'away')];
    return {
      env: { BUNDLES_URL: `file:${folder}` },
      async takeAway() {
        await mkdir(folder, { recursive: true });
        await rename(folder, away);
        await writeFile(folder, 'no folder');
      },
      async bringBack() {
        await rm(folder);
        await rename(away, folder);
      },
      async stop() {},
    };
  }
  const wire = new Wire(Number(new URL(s3.endpoint).port));
  await wire.listen();
  return {
    env: { ...s3.env('contract'), AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${wire.port}` },
    takeAway: () => wire.close(),
    bringBack: () => wire.listen(),
    async stop() {
      await wire.close();
      await s3.stop();
    },
  };
}

let stack: TestStack;
let deployer: Deployer;
let root: string;
let place: Place;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'bundle-stores-'));
  await mkdir(join(root, 'no-apps'));
  place = await bundlePlace(root);
  const own = (part: string): Record<string, string> =>
    part.startsWith('worker')
      ? { BUNDLE_CACHE_DIR: join(root, part), WORKER_APPS: part === 'worker-1' ? 'acme/one' : 'acme/two,acme/many' }
      : {};
  stack = await startTestStack({
    apps: join(root, 'no-apps'),
    scale: { ...ONE_OF_EACH, worker: 2 },
    env: (part) => ({
      ...place.env,
      ROLL_OUT_TIMEOUT_S: '120',
      LEASE_MS: '3000',
      LEASE_RENEW_MS: '500',
      DEPLOYMENTS_RESCAN_MS: '500',
      // Room for the running version, and for no other.
      BUNDLE_CACHE_MAX_BYTES: '1',
      ...own(part),
    }),
  });
  deployer = new Deployer(stack.port, stack.jwtSecret, 'acme');
});
afterAll(async () => {
  await stack?.stop();
  await place?.stop();
  await rm(root, { recursive: true });
});

const saying = (text: string): Record<string, string> => ({
  'main.py': `import os\ndef say():\n    return ${JSON.stringify(text)}\ndef names():\n    return sorted(os.environ)\n`,
});
const cached = (worker: string): Promise<string[]> => readdir(join(root, worker, 'acme')).catch(() => []);
const versionsOf = (worker: string, app: string): Promise<string[]> => readdir(join(root, worker, 'acme', app));
const result = async (app: string, fn: string): Promise<unknown> =>
  (JSON.parse((await deployer.call(app, fn)).text) as { result: unknown }).result;

test('a worker that serves some apps fetches only the bundles of these apps', async () => {
  for (const app of ['one', 'two']) {
    const { version } = await deployer.deploy(app, saying(app));
    expect(await deployer.settled(app, version)).toMatchObject({ state: 'active' });
    expect(await result(app, 'say')).toBe(app);
  }
  expect(await cached('worker-1')).toEqual(['one']);
  expect(await cached('worker-2')).toEqual(['two']);
});

test('no function and no log sees the keys of the bundle store', async () => {
  const names = (await result('one', 'names')) as string[];
  expect(names.filter((name) => /^(AWS|BUNDLE)/.test(name))).toEqual([]);
  const { AWS_SECRET_ACCESS_KEY: secret = 'none', AWS_ACCESS_KEY_ID: key = 'none' } = place.env;
  expect(stack.logs()).not.toContain(secret);
  expect(stack.logs()).not.toContain(key);
});

test('the disk of a worker keeps the versions that run, and removes the versions that were not used for the longest time', async () => {
  const versions: string[] = [];
  // A version leaves the disk at a fetch after the end of its processes.
  await deployer.until(async () => {
    const { version } = await deployer.deploy('many', saying(`version ${versions.length}`));
    await deployer.settled('many', version);
    versions.push(version);
    return !(await versionsOf('worker-2', 'many')).includes(versions[0] as string);
  });
  expect(await result('many', 'say')).toBe(`version ${versions.length - 1}`);
  expect(await versionsOf('worker-2', 'many')).toContain(versions.at(-1));
  expect(await versionsOf('worker-2', 'two')).toHaveLength(1);
  // A removed version is fetched again for a rollback.
  await deployer.request('POST', `/apps/many/versions/${versions[0]}/activate`);
  expect(await deployer.settled('many', versions[0] as string)).toMatchObject({ state: 'active' });
  expect(await result('many', 'say')).toBe('version 0');
});

test('while the bundle store is away, a rollback to a removed version waits with the reason, and the active version serves', async () => {
  const { version: removed } = await deployer.deploy('one', saying('first'));
  await deployer.settled('one', removed);
  // A version leaves the disk at a fetch after the end of its processes.
  let latest = 0;
  await deployer.until(async () => {
    const { version } = await deployer.deploy('one', saying(`later ${++latest}`));
    await deployer.settled('one', version);
    return !(await versionsOf('worker-1', 'one')).includes(removed);
  });
  await place.takeAway();
  await deployer.request('POST', `/apps/one/versions/${removed}/activate`);
  await deployer.until(async () => {
    const { text } = await deployer.raw('GET', `/apps/one/versions/${removed}/log`);
    return /waiting: .*(cannot be reached|ENOTDIR|cannot be used)/.test(text);
  });
  expect(await deployer.version('one', removed)).toMatchObject({ state: 'retired', rolling_out: true });
  expect(await result('one', 'say')).toBe(`later ${latest}`);
  await place.bringBack();
  expect(await deployer.settled('one', removed)).toMatchObject({ state: 'active' });
  expect(await result('one', 'say')).toBe('first');
});

test('while the bundle store is away, an upload returns 503 with the reason and leaves nothing', async () => {
  await place.takeAway();
  const answer = await deployer.deploy('two', saying('later'));
  expect(answer).toMatchObject({ status: 503, error: { code: 'unavailable' } });
  expect(answer.error?.message).toMatch(
    /The bundle store did not take the bundle: .*(cannot be reached|cannot be used)/,
  );
  await place.bringBack();
  const { version } = await deployer.deploy('two', saying('later'));
  await deployer.settled('two', version);
  expect(await result('two', 'say')).toBe('later');
});

test('a worker that cannot get a bundle reports the reason in the state of the app, and tries until it can', async () => {
  await rm(join(root, 'worker-1'), { recursive: true });
  await place.takeAway();
  await stack.kill('worker-1');
  const waiting = await deployer.until(async () => {
    const { body } = await deployer.request('GET', '/apps/one');
    return body.state === 'starting' && /cannot be reached|ENOTDIR|cannot be used/.test(String(body.reason));
  });
  expect(waiting).toBe(true);
  await place.bringBack();
  await deployer.until(async () => (await deployer.request('GET', '/apps/one')).body.state === 'ready');
  expect(await result('one', 'say')).toBe('first');
});
