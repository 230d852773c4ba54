// Contract 4: both example receivers accept signed deliveries, reject unsigned ones, and handle a delivery once.
import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { projectRoot } from '@inference-proxy/supervisor';
import { afterAll, describe, expect, test } from '@jest/globals';

const SECRET = 'a secret with ümlauts';
const folder = join(projectRoot(), 'examples', 'receivers');
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

/** Starts a receiver. `said` returns its next line of output. */
async function receiver(program: string, script: string) {
  const child = spawn(program, [join(folder, script)], {
    env: { PATH: process.env.PATH, PORT: '0', SECRET },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const said = async (): Promise<string> => String((await lines.next()).value);
  const url = /http:\S+/.exec(await said())?.[0] ?? '';
  return { child, url, said };
}

function delivery(id: string, body: string, { secret = SECRET, ageS = 0 } = {}): RequestInit {
  const timestamp = String(Math.floor(Date.now() / 1000) - ageS);
  const signature = createHmac('sha256', secret).update(`run-1.${timestamp}.${body}`).digest('hex');
  return {
    method: 'POST',
    body,
    headers: {
      'Content-Type': 'application/json',
      'X-Request-Id': 'run-1',
      'X-Service-Webhook-Timestamp': timestamp,
      'X-Service-Webhook-Signature': `v1,${signature}`,
      'webhook-id': id,
    },
  };
}

describe.each([
  ['Node', process.execPath, 'receiver.mjs'],
  ['Python', 'python3', 'receiver.py'],
])('the %s receiver', (_language, program, script) => {
  test('accepts a signed delivery once, and rejects a wrong, an old and a missing signature', async () => {
    const { child, url, said } = await receiver(program, script);
    const body = '{"run_id":"run-1","result":"naïve café 東京 🚀"}';
    expect((await fetch(url, delivery('d-1', body))).status).toBe(204);
    expect(await said()).toBe(`verified d-1: ${body}`);
    expect((await fetch(url, delivery('d-1', body))).status).toBe(204);
    expect(await said()).toContain('repeated d-1');
    expect((await fetch(url, delivery('d-2', body, { secret: 'another' }))).status).toBe(401);
    expect(await said()).toContain('refused d-2');
    expect((await fetch(url, delivery('d-3', body, { ageS: 3600 }))).status).toBe(401);
    expect((await fetch(url, { method: 'POST', body })).status).toBe(401);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect((await ended)[0]).toBe(0);
  });
});
