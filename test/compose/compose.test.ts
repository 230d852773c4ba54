// docker-compose.yml with a real engine: the commands of docs/operations/*.md. Without an engine the tests are skipped with a message.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RECEIVER_SECRET } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { type Answer, textOf } from '../client/http.ts';
import { until } from '../client/until.ts';
import { root } from '../documents/markdown.ts';
import { ComposeStack } from './compose-stack.ts';
import { type Engine, findEngine, NoEngine } from './engine.ts';
import { addresses, contained, reached } from './inside.ts';
import { type CallOutcome, Load } from './load.ts';

jest.setTimeout(600_000);
const BUILD_MS = 660_000;

const SCALE = { gateway: 3, worker: 4, dispatcher: 2 } as const;
const ALL = ['proxy', 'gateway', 'worker', 'dispatcher', 'receiver'] as const;
/** The networks that Docker gives to compose. The receiver is in one of these networks. */
const PRIVATE_NETWORKS = '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16';
const HOOK = { url: 'http://receiver:8090/', secret: RECEIVER_SECRET };

const DASHBOARD_TOKEN = 'a-token-of-the-dashboard';

/** Waits longer than `until`, because a dozen containers share two cores. */
async function patiently<T>(look: () => Promise<T | false | undefined>, everyMs = 200): Promise<T> {
  for (let left = 3; ; left--) {
    try {
      return await until(look, everyMs);
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

const say = (text: string): void => void process.stderr.write(`compose: ${text}\n`);

const engine: Engine | string = await findEngine().catch((error: unknown) => {
  if (!(error instanceof NoEngine)) throw error;
  return error.message;
});
if (typeof engine === 'string') say(`not run here: ${engine}`);

(typeof engine === 'string' ? describe.skip : describe)('the compose stack', () => {
  let stack: ComposeStack;
  let deployments: string;
  beforeAll(async () => {
    const began = performance.now();
    // The apps of all tests, and the app `heads`, which returns the headers that it receives.
    deployments = await mkdtemp(join(tmpdir(), 'deployments-'));
    for (const apps of ['test/apps', 'test/compose/apps']) await cp(join(root, apps), deployments, { recursive: true });
    await chmod(deployments, 0o755);
    stack = await ComposeStack.prepare(engine as Engine, {
      DEPLOYMENTS: deployments,
      RUN_LOG_MAX_BYTES: '100000',
      GATEWAYS: String(SCALE.gateway),
      WORKERS: String(SCALE.worker),
      DISPATCHERS: String(SCALE.dispatcher),
      WEBHOOK_ALLOWED_NETWORKS: PRIVATE_NETWORKS,
      COMPOSE_PROFILES: 'proxy-metrics',
      QUEUE_DASHBOARD: 'true',
      OPERATIONS_TOKEN: DASHBOARD_TOKEN,
    });
    await stack.build('gateway', 'worker', 'dispatcher');
    say(`images built in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }, BUILD_MS);
  afterAll(async () => {
    await stack?.down();
    await rm(deployments, { recursive: true, force: true });
  }, 120_000);

  /** Waits for an answer, because a started container is not ready immediately. */
  const answers = () =>
    patiently(() =>
      stack.caller.call('streams/value', { value: 1 }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );

  test('starts three gateways, four workers and two dispatchers, and answers', async () => {
    const began = performance.now();
    await stack.up(ALL);
    await answers();
    say(`${((performance.now() - began) / 1000).toFixed(1)} s from built images to the first answer`);
    for (const service of ['gateway', 'worker', 'dispatcher'] as const)
      expect(await stack.containers(service)).toHaveLength(SCALE[service]);
  });

  test('every service runs as an ordinary user under an init, and has no key of another service', async () => {
    for (const service of ['gateway', 'worker', 'dispatcher'] as const) {
      const [id = ''] = await stack.containers(service);
      expect((await stack.docker(['exec', id, 'id', '-un'])).trim()).toBe('node');
      expect((await stack.docker(['exec', id, 'cat', '/proc/1/comm'])).trim()).toBe('tini');
      const names = (await stack.docker(['exec', id, 'env']))
        .split('\n')
        .filter((line) => /^(JWT|SECRETS)_\w+=./.test(line));
      const keys = names.map((line) => line.split('=')[0]).sort();
      expect(keys).toEqual(
        { gateway: ['JWT_SECRET', 'SECRETS_KEY'], worker: [], dispatcher: ['SECRETS_KEY'] }[service],
      );
      const image = (await stack.docker(['inspect', '--format', '{{.Image}}', id])).trim();
      const history = await stack.docker(['history', '--no-trunc', image]);
      expect(history).not.toMatch(/JWT_SECRET|SECRETS_KEY/);
    }
    await patiently(async () => {
      const ids = (
        await Promise.all((['gateway', 'worker', 'dispatcher'] as const).map((one) => stack.containers(one)))
      ).flat();
      const health = await Promise.all(
        ids.map((id) => stack.docker(['inspect', '--format', '{{.State.Health.Status}}', id])),
      );
      return health.every((one) => one.trim() === 'healthy');
    }, 1000);
  });

  test('every container has limits, cannot write its root and has only the privileges that it needs', async () => {
    for (const service of ['proxy', 'gateway', 'worker', 'dispatcher', 'redis'] as const) {
      const [id = ''] = await stack.containers(service);
      // The proxy has six capabilities: CHOWN, DAC_OVERRIDE, KILL, SETGID, SETUID, NET_BIND_SERVICE.
      const capabilities = [service === 'proxy' ? '00000000000004e3' : '0000000000000000'];
      const found = await contained(stack, id);
      expect([service, found]).toEqual([
        service,
        {
          capabilities,
          noNewPrivileges: true,
          rootCanBeWritten: false,
          tmpCanBeWritten: true,
          pids: expect.any(Number),
          memoryBytes: expect.any(Number),
          cpus: 2,
        },
      ]);
    }
  });

  test('a function reaches Redis, and neither a peer of Redis nor an operations port of another service', async () => {
    const [worker = ''] = await stack.containers('worker');
    const targets: string[] = [];
    for (const [service, ports] of [
      ['gateway', [8080, 9464]],
      ['dispatcher', [9466]],
      ['proxy', [80, 443]],
    ] as const) {
      const [id = ''] = await stack.containers(service);
      for (const host of [service, ...(await addresses(stack, id))])
        targets.push(...ports.map((port) => `${host} ${port}`));
    }
    expect(await reached(stack, worker, ['redis 6379', ...targets])).toEqual(['redis 6379']);
    // On the edge network, containers reach gateways and dispatchers, but not Redis.
    const peers = ['dispatcher 9466', 'gateway 8080'];
    const [gateway = ''] = await stack.containers('gateway');
    expect(await reached(stack, gateway, peers)).toEqual(peers);
    const [receiver = ''] = await stack.containers('receiver');
    expect(await reached(stack, receiver, [...peers, 'redis 6379'])).toEqual(peers);
  });

  test('gateways accept forwarding headers from the proxy only, and the proxy drops the callers’ forwarding headers', async () => {
    const [proxy = ''] = await stack.containers('proxy');
    const [gateway = ''] = await stack.containers('gateway');
    expect(await addresses(stack, proxy)).toEqual([stack.proxyAddress]);
    expect(await stack.docker(['exec', gateway, 'printenv', 'TRUSTED_PROXIES'])).toBe(`${stack.proxyAddress}/32\n`);
    const claimed = {
      'x-forwarded-prefix': '/claimed',
      'x-real-ip': '192.0.2.1',
      'x-original-url': '/claimed',
      'x-original-uri': '/claimed',
      'x-rewrite-url': '/claimed',
      'x-forwarded-port': '1',
      'x-forwarded-server': 'claimed',
      'x-forwarded-ssl': 'claimed',
      forwarded: 'for=192.0.2.1',
    };
    await stack.caller.ready('heads');
    const answer = await stack.caller.request('/v4/demo/heads/', { method: 'GET', headers: claimed });
    const { 'x-forwarded-prefix': prefix, ...heads } = JSON.parse(answer.text) as Record<string, string>;
    expect(prefix).toBe('/v4/demo/heads');
    expect(Object.keys(heads).filter((name) => name in claimed)).toEqual([]);
    expect(heads['x-forwarded-for']?.split(', ').at(-1)).toBe(stack.proxyAddress);
    // Another container on the edge network is not a proxy, so the gateway drops its headers.
    const [receiver = ''] = await stack.containers('receiver');
    const token = (await stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo'])).trim();
    const asked = `fetch('http://gateway:8080/v4/demo/heads/', { headers: { authorization: 'Bearer ' + process.argv[1],
      'x-forwarded-for': '192.0.2.1', 'x-forwarded-prefix': '/claimed' } }).then(async (one) => console.log(await one.text()))`;
    const direct = JSON.parse(await stack.docker(['exec', receiver, 'node', '-e', asked, token])) as typeof heads;
    expect((await addresses(stack, receiver)).join()).toBe(direct['x-forwarded-for']);
    expect(direct['x-forwarded-prefix']).toBe('/v4/demo/heads');
  });

  test('prints a token, and a call with the token is answered; a call without a token is 401', async () => {
    const token = (await stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo'])).trim();
    const headers = { authorization: `Bearer ${token}` };
    expect((await stack.caller.call('streams/value', { value: 1 }, { headers })).status).toBe(200);
    const refused = await stack.caller.call('streams/value', 'x'.repeat(200_000), { headers: { authorization: '' } });
    expect(refused.status).toBe(401);
    expect(refused.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('the dispatcher serves the queue page to callers with the token', async () => {
    const [dispatcher = ''] = await stack.containers('dispatcher');
    const asked = `fetch('http://127.0.0.1:9466/queues', { headers: { authorization: process.argv[1] } })
      .then(async (answer) => console.log(answer.status, await answer.text()))`;
    const page = (token: string) => stack.docker(['exec', dispatcher, 'node', '-e', asked, `Bearer ${token}`]);
    expect(await page(DASHBOARD_TOKEN)).toMatch(/^200 .*<title>/s);
    expect(await page('another-token-of-length')).toMatch(/^401 /);
  });

  test('streams through the proxy item by item, with and without gzip, and a disconnect ends the run', async () => {
    for (const encoding of ['identity', 'gzip']) {
      const headers = { 'accept-encoding': encoding };
      const { answer, events, runId } = await stack.caller.stream(
        'streams/sleeping',
        { n: 4, seconds: 1 },
        { headers },
      );
      expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
      expect(answer.headers['content-encoding']).toBe(encoding === 'gzip' ? 'gzip' : undefined);
      expect([answer.headers['x-accel-buffering'], answer.headers.server]).toEqual(['no', 'inference-proxy']);
      expect(await events.next()).toBe('data: 0');
      // The run is still running, so the function has yet to yield the other items.
      expect((await stack.caller.lookUp(runId)).status).toBe('running');
      expect(await events.rest()).toEqual(['data: 1', 'data: 2', 'data: 3']);
    }
    const { events, runId } = await stack.caller.stream('streams/sleeping', { n: 600, seconds: 0.1 });
    await events.next();
    events.leave();
    expect((await stack.caller.ended(runId)).status).toBe('cancelled');
  });

  /** Waits until the receiver has printed a verified delivery of each of these runs. Returns the output of the receiver. */
  async function delivered(runIds: readonly string[]): Promise<string> {
    const [receiver = ''] = await stack.containers('receiver');
    let printed = '';
    // The attempts of a killed dispatcher are repeated when their leases expire, which takes longer than `until` waits.
    await patiently(async () => {
      printed = await stack.docker(['logs', receiver]);
      return runIds.every((id) => new RegExp(`^verified [^\\n]*"run_id":"${id}"`, 'm').test(printed));
    }, 1000);
    expect(printed).not.toContain('refused');
    return printed;
  }

  test('delivers a signed webhook, which the example receiver verifies', async () => {
    const query = `?webhookEndpoint=${encodeURIComponent(HOOK.url)}`;
    const headers = { 'x-webhook-secret': HOOK.secret };
    const answer = await stack.caller.call('streams/sleeping', { n: 2, seconds: 0 }, { query, headers });
    const { run_id: runId } = JSON.parse(answer.text) as { run_id: string };
    expect(await delivered([runId])).toContain(answer.text);
  });

  /** Whether a call failed because the machine, which runs a dozen containers, stood still for two seconds. No ended container is the reason then. */
  const stoodStill = ({ is, message, beganAt, endedAt }: CallOutcome): boolean =>
    is === 'unavailable' && message?.startsWith('The run store ') === true && endedAt - beganAt >= 2000;
  const failures = (outcomes: readonly CallOutcome[]): readonly CallOutcome[] =>
    outcomes.filter(({ is }) => is !== 'ok');
  const saidOf = (failed: readonly CallOutcome[]): string =>
    failed
      .map(({ kind, is, message, beganAt, endedAt }) =>
        [kind, is, `${(endedAt - beganAt).toFixed(0)} ms`, message?.slice(0, 40)].join(' '),
      )
      .join('; ') || 'none';
  const runsOf = (outcomes: readonly CallOutcome[]): string[] => outcomes.flatMap(({ runId }) => runId ?? []);

  test('if one container of each service is killed under load, only its open calls fail, and every promised run is delivered', async () => {
    const load = new Load(stack.caller, HOOK);
    await load.succeeds(20);
    /** For each service, the times before and after the kill of its container. */
    const killed: Partial<Record<'gateway' | 'worker' | 'dispatcher', readonly [number, number]>> = {};
    for (const service of ['gateway', 'worker', 'dispatcher'] as const) {
      const [victim = ''] = await stack.containers(service);
      const before = performance.now();
      await stack.docker(['kill', victim]);
      killed[service] = [before, performance.now()];
      await load.succeeds(40);
    }
    const outcomes = await load.stop();
    const during = (service: 'gateway' | 'worker', { beganAt, endedAt }: CallOutcome): boolean => {
      const [from, to] = killed[service] as readonly [number, number];
      return beganAt < to && endedAt > from;
    };
    const failed = failures(outcomes);
    say(`killed one of each under load: ${outcomes.length} calls, failed: ${saidOf(failed)}`);
    // Connections of the killed gateway break, or the proxy answers if no head was sent. Runs of the killed worker are lost. No later call fails.
    const allowed = (one: CallOutcome): boolean =>
      (during('gateway', one) && ['unavailable', 'broken'].includes(one.is)) ||
      (during('worker', one) && one.is === 'worker_lost') ||
      stoodStill(one);
    expect(failed.filter((one) => !allowed(one))).toEqual([]);
    const promised = runsOf(outcomes);
    expect(promised.length).toBeGreaterThan(10);
    const printed = await delivered(promised);
    for (const id of promised)
      expect(printed.split('\n').filter((line) => line.startsWith('verified') && line.includes(id))).toHaveLength(1);
    for (const service of ['gateway', 'worker', 'dispatcher'] as const)
      expect(await stack.containers(service)).toHaveLength(SCALE[service] - 1);
  });

  test('after a scale-up the proxy finds the new gateways without a restart', async () => {
    await stack.up(ALL);
    await patiently(async () => {
      await Promise.all(Array.from({ length: 12 }, () => stack.caller.call('streams/value', { value: 1 })));
      const gateways = await stack.containers('gateway');
      const lines = await Promise.all(gateways.map((id) => stack.docker(['logs', '--since', '20s', id])));
      return gateways.length === SCALE.gateway && lines.every((text) => text.includes('"function":"value"'));
    }, 1000);
  });

  test('one container of each service, stopped in order under load, fails no call', async () => {
    const load = new Load(stack.caller, HOOK);
    await load.succeeds(10);
    for (const service of ['gateway', 'worker', 'dispatcher'] as const) {
      const [one = ''] = await stack.containers(service);
      await stack.docker(['stop', '--time', '60', one]);
      expect((await stack.docker(['inspect', '--format', '{{.State.ExitCode}}', one])).trim()).toBe('0');
      await load.succeeds(20);
    }
    const outcomes = await load.stop();
    say(`stopped one of each under load: ${outcomes.length} calls, failed: ${saidOf(failures(outcomes))}`);
    expect(failures(outcomes)).toEqual([]);
    await delivered(runsOf(outcomes));
    await stack.up(ALL);
  });

  test('a gateway that is restarted under load fails no call', async () => {
    const load = new Load(stack.caller, HOOK);
    await load.succeeds(10);
    for (const gateway of await stack.containers('gateway')) {
      await stack.docker(['restart', '--time', '60', gateway]);
      // Like `npm run compose:upgrade`: restarts the next gateway only when this gateway is ready again.
      await patiently(() =>
        stack.docker(['exec', gateway, 'node', 'deploy/healthcheck.mjs', 'readyz']).then(
          () => true,
          () => false,
        ),
      );
      await load.succeeds(20);
    }
    const outcomes = await load.stop();
    say(`restarted each gateway under load: ${outcomes.length} calls, failed: ${saidOf(failures(outcomes))}`);
    expect(failures(outcomes)).toEqual([]);
  });

  test('a custom image serves an app with its dependencies', async () => {
    await stack.build('acme-worker');
    await stack.up([...ALL, 'acme-worker']);
    await answers();
    await stack.acme.ready('report');
    const table = await stack.acme.call('report/table', { rows: [['Ada', 36]], headers: ['name', 'age'] });
    expect(JSON.parse(table.text)).toMatchObject({
      result: '| name   |   age |\n|--------|-------|\n| Ada    |    36 |',
    });
    const { events } = await stack.acme.stream('report/banner', { text: 'hi' });
    expect((await events.rest()).join('\n')).toContain('|_| |_|_|');
    // Settings and limits are those of the service's workers.
    const [own = ''] = await stack.containers('acme-worker');
    const [worker = ''] = await stack.containers('worker');
    expect(await contained(stack, own)).toEqual(await contained(stack, worker));
    expect(await stack.docker(['exec', own, 'printenv', 'RUN_LOG_MAX_BYTES'])).toBe('100000\n');
    const [gateway = ''] = await stack.containers('gateway');
    const operations = (await addresses(stack, gateway)).map((address) => `${address} 9464`);
    expect(await reached(stack, own, ['redis 6379', ...operations])).toEqual(['redis 6379']);
  });

  test('wrong settings end `up` and the upgrade with an error, and running containers continue', async () => {
    const before = await stack.containers('dispatcher');
    await stack.set({ OPERATIONS_TOKEN: 'too-short' });
    await expect(stack.up(ALL)).rejects.toThrow();
    await expect(stack.script('compose:upgrade', ['--no-build'])).rejects.toThrow();
    const log = await stack.compose(['logs', '--no-color', 'dispatcher-settings']);
    expect(log).toMatch(/OPERATIONS_TOKEN is wrong: .*at least 16 characters/);
    expect(await stack.containers('dispatcher')).toEqual(before);
    await stack.set({ OPERATIONS_TOKEN: DASHBOARD_TOKEN });
  });

  test('`npm run compose:upgrade` applies new settings under load without a failed call, and `exec gateway token` works afterwards', async () => {
    await stack.set({ LOG_LEVEL: 'debug', DISPATCHERS: '1' });
    const load = new Load(stack.caller, HOOK);
    await load.succeeds(10);
    await stack.script('compose:upgrade', ['--no-build']);
    await load.succeeds(20);
    const outcomes = await load.stop();
    say(`upgraded under load: ${outcomes.length} calls, failed: ${saidOf(failures(outcomes))}`);
    expect(failures(outcomes).filter((one) => !stoodStill(one))).toEqual([]);
    await delivered(runsOf(outcomes));
    for (const [service, count] of Object.entries({ ...SCALE, dispatcher: 1, 'acme-worker': 1, 'gateway-spare': 0 })) {
      const ids = await stack.containers(service as keyof typeof SCALE);
      expect([service, ids.length]).toEqual([service, count]);
      for (const id of ids) expect(await stack.docker(['exec', id, 'printenv', 'LOG_LEVEL'])).toBe('debug\n');
    }
    const token = (await stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo'])).trim();
    const headers = { authorization: `Bearer ${token}` };
    expect((await stack.caller.call('streams/value', { value: 1 }, { headers })).status).toBe(200);
  });

  test('a backup made under load restores runs and deliveries after the loss of the volume', async () => {
    const file = join(stack.folder, 'backup.rdb');
    const load = new Load(stack.caller, HOOK);
    await load.succeeds(30);
    const before = runsOf(load.outcomes);
    await delivered(before);
    await stack.script('compose:backup', [file]);
    await load.succeeds(5);
    expect(failures(await load.stop())).toEqual([]);

    await stack.compose(['stop', '--timeout', '60']);
    await stack.compose(['rm', '--force', 'redis']);
    await stack.docker(['volume', 'rm', stack.volume('redis-data')]);
    await stack.script('compose:restore', [file]);
    await answers();
    expect(before.length).toBeGreaterThan(3);
    for (const id of before)
      expect(await stack.caller.lookUp(id)).toMatchObject({ status: 'succeeded', result: 'promised' });
    const [run = ''] = before;
    const attempts = async (): Promise<number> => {
      const { webhook } = await stack.caller.lookUp(run);
      return webhook?.state === 'delivered' ? webhook.attempts : 0;
    };
    const once = await attempts();
    const delivery = `msg_${run.replaceAll('-', '')}`;
    const again = await stack.caller.request(`/v4/demo/runs/${run}/deliveries/${delivery}/redeliver`);
    expect(again.status).toBe(202);
    await patiently(async () => (await attempts()) > once);
    // The restore does not overwrite existing data unless the operator asks for it.
    await expect(stack.script('compose:restore', [file])).rejects.toThrow();
    await stack.compose(['up', '--detach', '--no-build']);
    await answers();
  });

  const proxyMetrics = async (): Promise<Record<string, number>> => {
    const [exporter = ''] = await stack.containers('proxy-exporter');
    const asked = "fetch('http://127.0.0.1:9113/metrics').then(async (one) => console.log(await one.text()))";
    const text = await stack.docker(['exec', exporter, 'node', '-e', asked]);
    return Object.fromEntries(
      [...text.matchAll(/^([^#\s]+) (\S+)$/gm)].map(([, name, count]) => [name, Number(count)]),
    );
  };

  test('without a gateway the proxy answers in the contract’s shape, and logs and counts the answer', async () => {
    await stack.up(['proxy-exporter']);
    await patiently(() =>
      proxyMetrics().then(
        (found) => found.inference_proxy_proxy_up === 1,
        () => false,
      ),
    );
    const unserved = 'inference_proxy_proxy_unserved_total{status="503"}';
    const { [unserved]: before = Number.NaN } = await proxyMetrics();
    const served = await stack.caller.call('streams/value', { value: 1 }, { query: '?pretend=secret' });
    await stack.compose(['stop', '--timeout', '60', 'gateway']);
    const answer = await stack.caller.call('streams/value');
    expect(answer.status).toBe(503);
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'unavailable', retryable: true } });
    // The kernel reports an earlier rejection of the exporter's port to nginx once, so nginx does not count that one answer.
    await patiently(async () => {
      if (((await proxyMetrics())[unserved] ?? 0) > before) return true;
      await stack.caller.call('streams/value');
      return false;
    }, 1000);

    const [proxy = ''] = await stack.containers('proxy');
    const logged = (await stack.docker(['logs', '--tail', '200', proxy])).split('\n');
    const lineOf = ({ headers }: Answer) =>
      JSON.parse(logged.find((line) => line.includes(String(headers['x-request-id']))) ?? '{}') as object;
    const common = { msg: 'request', method: 'POST', path: '/v4/demo/streams/value', seconds: expect.any(Number) };
    expect(lineOf(answer)).toMatchObject({ ...common, status: 503, answeredBy: 'proxy' });
    expect(lineOf(served)).toMatchObject({
      ...common,
      status: served.status,
      answeredBy: 'gateway',
      gatewaySeconds: expect.stringMatching(/^\d+\.\d+$/),
    });
    expect(logged.join('\n')).not.toContain('pretend');
  });

  test('TLS_CERTIFICATES serves the service under https and redirects http', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'certificates-'));
    const [key, certificate] = [join(folder, 'privkey.pem'), join(folder, 'fullchain.pem')];
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const made = ['req', '-x509', ...curve, ...subject, '-days', '2', '-keyout', key, '-out', certificate];
    await promisify(execFile)('openssl', made);
    await stack.up(ALL, { TLS_CERTIFICATES: folder });
    const token = (await stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo'])).trim();
    const options = {
      ca: await readFile(certificate),
      host: '127.0.0.1',
      port: stack.tlsPort,
      servername: 'localhost',
      path: '/v4/demo/streams/items',
      method: 'POST',
      agent: false,
      headers: {
        host: 'localhost',
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'text/event-stream',
      },
    };
    const overTls = async (): Promise<string | undefined> => {
      const request = httpsRequest(options).end('{"items":["safe"]}');
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      const body = await textOf(answer);
      return answer.statusCode === 200 ? body : undefined;
    };
    expect(await patiently(() => overTls().catch(() => undefined))).toBe('data: safe\n\n');
    const plain = await stack.caller.request('/healthz', { method: 'GET', headers: { host: 'localhost' } });
    expect([plain.status, plain.headers.location]).toEqual([308, 'https://localhost/healthz']);
    await rm(folder, { recursive: true, force: true });
  });
});
