import { expect, test } from '@jest/globals';
import { addresses, contained, reached } from './inside.ts';
import { type Here, patiently } from './running.ts';

export function testIsolation(here: Here): void {
  test('every service runs as an ordinary user under an init, and has no key of another service', async () => {
    for (const service of ['gateway', 'worker', 'dispatcher'] as const) {
      const [id = ''] = await here.stack.containers(service);
      expect((await here.stack.docker(['exec', id, 'id', '-un'])).trim()).toBe('node');
      expect((await here.stack.docker(['exec', id, 'cat', '/proc/1/comm'])).trim()).toBe('tini');
      const names = (await here.stack.docker(['exec', id, 'env']))
        .split('\n')
        .filter((line) => /^(JWT|SECRETS)_\w+=./.test(line));
      const keys = names.map((line) => line.split('=')[0]).sort();
      expect(keys).toEqual(
        { gateway: ['JWT_SECRET', 'SECRETS_KEY'], worker: [], dispatcher: ['SECRETS_KEY'] }[service],
      );
      const image = (await here.stack.docker(['inspect', '--format', '{{.Image}}', id])).trim();
      const history = await here.stack.docker(['history', '--no-trunc', image]);
      expect(history).not.toMatch(/JWT_SECRET|SECRETS_KEY/);
    }
    await patiently(async () => {
      const ids = (
        await Promise.all((['gateway', 'worker', 'dispatcher'] as const).map((one) => here.stack.containers(one)))
      ).flat();
      const health = await Promise.all(
        ids.map((id) => here.stack.docker(['inspect', '--format', '{{.State.Health.Status}}', id])),
      );
      return health.every((one) => one.trim() === 'healthy');
    }, 1000);
  });

  test('every container has limits, cannot write its root and has only the privileges that it needs', async () => {
    for (const service of ['proxy', 'gateway', 'worker', 'dispatcher', 'redis'] as const) {
      const [id = ''] = await here.stack.containers(service);
      // The proxy has six capabilities: CHOWN, DAC_OVERRIDE, KILL, SETGID, SETUID, NET_BIND_SERVICE.
      const capabilities = [service === 'proxy' ? '00000000000004e3' : '0000000000000000'];
      const found = await contained(here.stack, id);
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
    const [worker = ''] = await here.stack.containers('worker');
    const targets: string[] = [];
    for (const [service, ports] of [
      ['gateway', [8080, 9464]],
      ['dispatcher', [9466]],
      ['proxy', [80, 443]],
    ] as const) {
      const [id = ''] = await here.stack.containers(service);
      for (const host of [service, ...(await addresses(here.stack, id))])
        targets.push(...ports.map((port) => `${host} ${port}`));
    }
    expect(await reached(here.stack, worker, ['redis 6379', ...targets])).toEqual(['redis 6379']);
    // On the edge network, containers reach gateways and dispatchers, but not Redis.
    const peers = ['dispatcher 9466', 'gateway 8080'];
    const [gateway = ''] = await here.stack.containers('gateway');
    expect(await reached(here.stack, gateway, peers)).toEqual(peers);
    const [receiver = ''] = await here.stack.containers('receiver');
    expect(await reached(here.stack, receiver, [...peers, 'redis 6379'])).toEqual(peers);
  });

  test('gateways accept forwarding headers from the proxy only, and the proxy drops the callers’ forwarding headers', async () => {
    const [proxy = ''] = await here.stack.containers('proxy');
    const [gateway = ''] = await here.stack.containers('gateway');
    expect(await addresses(here.stack, proxy)).toEqual([here.stack.proxyAddress]);
    expect(await here.stack.docker(['exec', gateway, 'printenv', 'TRUSTED_PROXIES'])).toBe(
      `${here.stack.proxyAddress}/32\n`,
    );
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
    await here.stack.caller.ready('heads');
    const answer = await here.stack.caller.request('/v4/demo/heads/', { method: 'GET', headers: claimed });
    const { 'x-forwarded-prefix': prefix, ...heads } = JSON.parse(answer.text) as Record<string, string>;
    expect(prefix).toBe('/v4/demo/heads');
    expect(Object.keys(heads).filter((name) => name in claimed)).toEqual([]);
    expect(heads['x-forwarded-for']?.split(', ').at(-1)).toBe(here.stack.proxyAddress);
    // Another container on the edge network is not a proxy, so the gateway drops its headers.
    const [receiver = ''] = await here.stack.containers('receiver');
    const token = (await here.stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo'])).trim();
    const asked = `fetch('http://gateway:8080/v4/demo/heads/', { headers: { authorization: 'Bearer ' + process.argv[1],
      'x-forwarded-for': '192.0.2.1', 'x-forwarded-prefix': '/claimed' } }).then(async (one) => console.log(await one.text()))`;
    const direct = JSON.parse(await here.stack.docker(['exec', receiver, 'node', '-e', asked, token])) as typeof heads;
    expect((await addresses(here.stack, receiver)).join()).toBe(direct['x-forwarded-for']);
    expect(direct['x-forwarded-prefix']).toBe('/v4/demo/heads');
  });
}
