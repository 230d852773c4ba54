// `npm run console:screenshots`: starts a stack with examples of calls, and writes the pictures of docs/console.md.
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { projectRoot, signToken } from '@inference-proxy/supervisor';
import { type Browser, chromium } from 'playwright-core';
import { create } from 'tar';
import { obtainChromium } from '../stack/chromium.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { losableGateway } from './losable-gateway.ts';

const FOLDER = join(projectRoot(), 'docs', 'images');
const PROJECT = 'demo';
/** By name in the pictures: an app of `test/apps/console`. */
const APPS = { search: 'broken', shop: 'shop' };
const WIDE = { width: 1120, height: 640 };
const NARROW = { width: 360, height: 740 };
/** Charts and times settle within this time, in milliseconds. */
const SETTLES_MS = 2_500;

interface Picture {
  readonly name: string;
  readonly view: string;
  readonly dark?: boolean;
  readonly narrow?: boolean;
}

const obtained = await obtainChromium();
if ('missing' in obtained) throw new Error(obtained.missing);

const apps = await mkdtemp(join(tmpdir(), 'pictures-'));
for (const [name, app] of Object.entries(APPS))
  await cp(join(projectRoot(), 'test', 'apps', 'console', app), join(apps, PROJECT, name), { recursive: true });
const stack = await startTestStack({ apps, env: { WEBHOOK_SCHEDULE: '0,3600' } });
const connection = await losableGateway(stack.port);
const receiver = createServer((request, answer) => {
  request.resume();
  answer.writeHead(request.url === '/down' ? 503 : 204).end();
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const token = signToken(stack.jwtSecret, {
  project: PROJECT,
  ttlS: 600,
  more: { scope: ['call', 'runs:read', 'runs:write', 'apps:write'] },
});

/** Calls a function without waiting for the answer. Returns the id of the run. */
async function accepted({ port }: TestStack, fn: string, params: object, hook?: string): Promise<string> {
  const { port: to } = receiver.address() as AddressInfo;
  const query = hook === undefined ? '' : `&webhookEndpoint=${encodeURIComponent(`http://127.0.0.1:${to}/${hook}`)}`;
  const answer = await fetch(`http://127.0.0.1:${port}/v4/${PROJECT}/${fn}?async=true${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(params),
  });
  const { run_id: id } = (await answer.json()) as { run_id: string };
  return id;
}

/** Sends a request of a deployer. */
const request = (path: string, init: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${stack.port}/v4/${PROJECT}/apps/notes${path}`, {
    ...init,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/gzip' },
  });

/** Deploys three versions of an app. The last cannot start. */
async function deployVersions(): Promise<void> {
  const folder = join(apps, '.notes');
  await mkdir(folder);
  for (const line of ['import json', 'import html', 'import mailer']) {
    await writeFile(join(folder, 'main.py'), `${line}\n\ndef notify(text: str):\n    return text\n`);
    const bundle = await create({ gzip: true, cwd: folder }, ['main.py']).concat();
    const answer = await request('/versions', { method: 'POST', body: new Uint8Array(bundle) });
    const { version } = (await answer.json()) as { version: string };
    for (let rolling = true; rolling; await setTimeout(SETTLES_MS / 10)) {
      const found = (await (await request(`/versions/${version}`, {})).json()) as { rolling_out: boolean };
      rolling = found.rolling_out;
    }
  }
  await request('/secrets/SMTP_PASSWORD', { method: 'PUT', body: '{"value":"example"}' });
}

async function pictures(): Promise<readonly Picture[]> {
  await deployVersions();
  const address = { street: 'Hauptstr. 1' };
  for (let n = 0; n < 8; n += 1) await accepted(stack, 'shop/quick', { n });
  for (const customer of ['Ada', 'Grace', 'Alan'])
    await accepted(stack, 'shop/order', { customer, items: [{ name: 'pen', count: 3 }], address }, 'hook');
  for (let n = 0; n < 25; n += 1) await accepted(stack, 'shop/fails', { text: 'no pens in stock' }, 'down');
  await accepted(stack, 'shop/numbers', { n: 10_000 });
  const live = await accepted(stack, 'shop/numbers', { n: 4_000, seconds: 0.2 }, 'hook');
  return [
    { name: 'overview', view: 'overview' },
    { name: 'overview-dark', view: 'overview', dark: true },
    { name: 'runs', view: 'runs' },
    { name: 'run', view: `runs/${live}` },
    { name: 'run-dark', view: `runs/${live}`, dark: true },
    { name: 'try', view: 'try/shop/order' },
    { name: 'webhooks', view: 'webhooks' },
    { name: 'app', view: 'apps/notes' },
    { name: 'broken', view: 'apps/search' },
    { name: 'overview-narrow', view: 'overview', narrow: true },
    { name: 'run-narrow', view: `runs/${live}`, narrow: true },
    { name: 'runs-narrow', view: 'runs', dark: true, narrow: true },
  ];
}

async function take(browser: Browser, { name, view, dark = false, narrow = false }: Picture): Promise<void> {
  const page = await browser.newPage({ viewport: narrow ? NARROW : WIDE, colorScheme: dark ? 'dark' : 'light' });
  const address = `http://127.0.0.1:${connection.port}/console`;
  await page.goto(`${address}#token=${token}`);
  await page.getByRole('navigation', { name: 'Views' }).waitFor();
  await page.goto(`${address}#/${PROJECT}/${view}`);
  await setTimeout(SETTLES_MS);
  await page.screenshot({ path: join(FOLDER, `console-${name}.png`) });
  await page.close();
}

const browser = await chromium.launch({
  executablePath: obtained.path,
  env: { ...(process.env as Record<string, string>), ...obtained.env },
  args: ['--no-sandbox'],
});
try {
  await mkdir(FOLDER, { recursive: true });
  for (const picture of await pictures()) await take(browser, picture);
} finally {
  await browser.close();
  receiver.close();
  receiver.closeAllConnections();
  await connection.stop();
  await stack.stop();
  await rm(apps, { recursive: true });
}
