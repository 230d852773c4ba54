// docs/operations/deploy.md: answers, logs and metrics of the proxy, and TLS.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { type Answer, textOf } from '../client/http.ts';
import { ALL, type Here, patiently } from './running.ts';

export function testProxy(here: Here): void {
  const proxyMetrics = async (): Promise<Record<string, number>> => {
    const [exporter = ''] = await here.stack.containers('proxy-exporter');
    const asked = "fetch('http://127.0.0.1:9113/metrics').then(async (one) => console.log(await one.text()))";
    const text = await here.stack.docker(['exec', exporter, 'node', '-e', asked]);
    return Object.fromEntries(
      [...text.matchAll(/^([^#\s]+) (\S+)$/gm)].map(([, name, count]) => [name, Number(count)]),
    );
  };

  test('without a gateway the proxy answers in the contract’s shape, and logs and counts the answer', async () => {
    await here.stack.up(['proxy-exporter']);
    await patiently(() =>
      proxyMetrics().then(
        (found) => found.inference_proxy_proxy_up === 1,
        () => false,
      ),
    );
    const unserved = 'inference_proxy_proxy_unserved_total{status="503"}';
    const { [unserved]: before = Number.NaN } = await proxyMetrics();
    const served = await here.stack.caller.call('streams/value', { value: 1 }, { query: '?pretend=secret' });
    await here.stack.compose(['stop', '--timeout', '60', 'gateway']);
    const answer = await here.stack.caller.call('streams/value');
    expect(answer.status).toBe(503);
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'unavailable', retryable: true } });
    // The kernel reports an earlier rejection of the exporter's port to nginx once, so nginx does not count that one answer.
    await patiently(async () => {
      if (((await proxyMetrics())[unserved] ?? 0) > before) return true;
      await here.stack.caller.call('streams/value');
      return false;
    }, 1000);

    const [proxy = ''] = await here.stack.containers('proxy');
    const logged = (await here.stack.docker(['logs', '--tail', '200', proxy])).split('\n');
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
    await here.stack.up(ALL, { TLS_CERTIFICATES: folder });
    const token = (await here.stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo'])).trim();
    const options = {
      ca: await readFile(certificate),
      host: '127.0.0.1',
      port: here.stack.tlsPort,
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
    const plain = await here.stack.caller.request('/healthz', { method: 'GET', headers: { host: 'localhost' } });
    expect([plain.status, plain.headers.location]).toEqual([308, 'https://localhost/healthz']);
    await rm(folder, { recursive: true, force: true });
  });
}
