// Contract 6: a person uses the page of `GET /docs` in a real Chromium.
import { obtainChromium } from '@inference-proxy/test/chromium';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Browser, chromium, type Page } from 'playwright-core';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';
import { app } from '../../test/played-worker.ts';

const LIMIT_MS = 120_000;

const obtained = await obtainChromium();
const missing = 'missing' in obtained ? obtained.missing : undefined;
if (missing !== undefined) console.warn(`skipped: ${missing}`);
const testInBrowser = missing === undefined ? test : test.skip;

let gateway: GatewayUnderTest;
let browser: Browser | undefined;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  await gateway.worker.start(
    app({
      app: 'typed',
      functions: [
        {
          name: 'count',
          parameters: [],
          extra: false,
          examples: [{ upto: 2 }],
          schema: {
            kind: 'stream',
            summary: 'Yields numbers.',
            parameters: {
              type: 'object',
              properties: { upto: { type: 'integer', maximum: 5 } },
              required: ['upto'],
              additionalProperties: false,
            },
            item: { type: 'integer' },
          },
        },
      ],
    }),
  );
  if ('path' in obtained)
    browser = await chromium.launch({
      executablePath: obtained.path,
      env: { ...(process.env as Record<string, string>), ...obtained.env },
      args: ['--no-sandbox'],
    });
}, LIMIT_MS);
afterAll(async () => {
  await browser?.close();
  await gateway.stop();
});

/** Opens the page. `requests` has the addresses that it loaded, `complaints` what the browser refused. */
async function opened(): Promise<{ page: Page; requests: string[]; complaints: string[] }> {
  const page = await (browser as Browser).newPage();
  page.setDefaultTimeout(LIMIT_MS);
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => {
    if (message.type() === 'error' && /Content Security Policy/.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`http://127.0.0.1:${gateway.port}/docs`);
  return { page, requests, complaints };
}

testInBrowser(
  'a person pastes a token, calls a typed function, sees the wrong field, and watches a stream arrive',
  async () => {
    const { page, requests, complaints } = await opened();
    // Without a token, the page shows the document of the service.
    await page.getByText('Calls a function', { exact: true }).waitFor();

    await page.fill('#token', token());
    await page.locator('#token').blur();
    await page.locator('#app option[value="typed"]').waitFor({ state: 'attached' });
    expect(await page.inputValue('#project')).toBe(PROJECT);
    await page.locator('#app').selectOption('typed');
    await page.getByText('Yields numbers.').click();

    const body = page.locator('.body-param textarea');
    expect(JSON.parse(await body.inputValue())).toEqual({ upto: 2 });
    await body.fill('{"upto": "many"}');
    await page.getByRole('button', { name: 'Execute' }).click();
    const live = page.locator('.live');
    await live.getByText('upto: Input should be a valid integer').waitFor();
    await page.locator('.live-responses-table .response-col_status', { hasText: '422' }).waitFor();

    await body.fill('{"upto": 2}');
    await page
      .locator('.responses-table:not(.live-responses-table) select.content-type')
      .first()
      .selectOption('text/event-stream');
    await page.getByRole('button', { name: 'Execute' }).click();
    const run = await gateway.worker.next('typed');
    expect(run.params).toBe('{"upto": 2}');
    await run.items(['1'], 'j');
    // The first item is on the page while the function still runs.
    await live.getByText('Stream: 1 event', { exact: true }).waitFor();
    expect(await live.getAttribute('data-open')).toBe('true');
    expect(await live.locator('pre').textContent()).toBe('1');
    await run.items(['2'], 'j');
    await run.stops();
    await live.getByText('Stream: 2 events, complete').waitFor();
    expect(await live.locator('pre').textContent()).toBe('1\n2');

    const own = `http://127.0.0.1:${gateway.port}/`;
    expect(requests.filter((url) => !url.startsWith(own) && !url.startsWith('data:'))).toEqual([]);
    expect(complaints).toEqual([]);
  },
  LIMIT_MS,
);

testInBrowser(
  'a wrong token is reported on the page, and the page shows the document of the service again',
  async () => {
    const { page } = await opened();
    await page.fill('#token', token());
    await page.locator('#token').blur();
    await page.locator('#app').selectOption('typed');
    await page.getByText('Yields numbers.').waitFor();
    await page.fill('#token', 'no token');
    await page.locator('#token').blur();
    await page.locator('#status', { hasText: '401' }).waitFor();
    await page.getByText('Calls a function', { exact: true }).waitFor();
    expect(await page.inputValue('#app')).toBe('');
    // The header has the only field for the token.
    expect(await page.getByRole('button', { name: 'Authorize' }).count()).toBe(0);
  },
  LIMIT_MS,
);

test('the page has a strict policy, and its files are compressed and checked by their tags', async () => {
  const answer = await gateway.get('/docs', { authorization: '' });
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
  const policy = String(answer.headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
  expect(policy).not.toContain('unsafe');
  for (const [, path = ''] of answer.text.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)) {
    const file = await gateway.get(path, { 'accept-encoding': 'gzip' });
    // Pictures are compressed already.
    const encoding = path.endsWith('.png') ? undefined : 'gzip';
    expect([path, file.status, file.headers['content-encoding']]).toEqual([path, 200, encoding]);
    const again = await gateway.get(path, { 'if-none-match': String(file.headers.etag) });
    expect(again.status).toBe(304);
  }
});

test.each(['none.js', '..%2Fpackage.json', 'constructor'])('there is no file %s', async (name) => {
  expect((await gateway.get(`/docs/${name}`)).status).toBe(404);
});
