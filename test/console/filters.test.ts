// A person finds runs in the console by app, function, state, time and webhook, and the page asks seldom in a hidden tab.
import { receiver } from '@inference-proxy/test/receiver';
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { until } from '../client/until.ts';
import { type ConsoleUnderTest, LIMIT_MS, openConsole, testInBrowser } from './browser.ts';

let ours: ConsoleUnderTest;
const ids: Record<string, string> = {};
beforeAll(async () => {
  ours = await openConsole('console-filters', ['shop', 'hostile']);
  const hook = await receiver(() => ({ status: 410 }));
  const query = `?async=true&webhookEndpoint=${encodeURIComponent(hook.url)}`;
  const run = async (name: string, fn: string, params: object, more = '?async=true'): Promise<void> => {
    const { text } = await ours.caller.call(fn, params, { query: more });
    ids[name] = JSON.parse(text).run_id;
    await ours.caller.ended(ids[name] as string);
  };
  await run('quick', 'shop/quick', { n: 1 });
  await run('failed', 'shop/fails', {});
  await run('hostile', 'hostile/value', {});
  await run('hooked', 'shop/numbers', { n: 1 }, query);
  await until(async () => (await ours.caller.lookUp(ids.hooked as string)).webhook?.state === 'failed');
  await hook.close();
}, LIMIT_MS);
afterAll(() => ours.stop());

/** Waits until the list has exactly these runs. */
async function listed(page: Page, ...names: readonly string[]): Promise<void> {
  const wanted = names.map((name) => ids[name]).sort();
  await page.waitForFunction((all) => {
    const shown = [...document.querySelectorAll('tbody tr small')].map(({ textContent }) => textContent).sort();
    return JSON.stringify(shown) === JSON.stringify(all);
  }, wanted);
}

testInBrowser(
  'each filter lists exactly the matching runs, and a link keeps the filters',
  async () => {
    const { page } = await ours.open('runs');
    await listed(page, 'quick', 'failed', 'hostile', 'hooked');
    await page.getByLabel('App').selectOption('shop');
    await listed(page, 'quick', 'failed', 'hooked');
    await page.getByLabel('Function').selectOption('numbers');
    await listed(page, 'hooked');
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('State').selectOption('failed');
    await listed(page, 'failed');
    await page.getByLabel('State').selectOption('succeeded');
    await page.getByLabel('Webhook').selectOption('none');
    await listed(page, 'quick', 'hostile');
    await page.getByLabel('Webhook').selectOption('failed');
    await listed(page, 'hooked');
    await page.reload();
    await listed(page, 'hooked');
    expect(await page.getByLabel('State').inputValue()).toBe('succeeded');
  },
  LIMIT_MS,
);

testInBrowser(
  'the time filter has spans up to now, and moments of the person’s choice',
  async () => {
    const { page } = await ours.open('runs');
    await page.getByLabel('Accepted').selectOption('15m');
    await listed(page, 'quick', 'failed', 'hostile', 'hooked');
    await page.getByLabel('Accepted').selectOption('own');
    await page.getByLabel('To').fill('2020-01-01T00:00');
    await page.getByText('No run matches.').waitFor();
    await page.getByLabel('From').fill('2020-01-01T00:00');
    await page.getByLabel('To').fill('2999-01-01T00:00');
    await listed(page, 'quick', 'failed', 'hostile', 'hooked');
  },
  LIMIT_MS,
);

testInBrowser(
  'a hidden tab asks once a minute, and a tab that is shown again asks at once',
  async () => {
    const { page, requests } = await ours.open();
    await page.clock.install();
    await page.goto(`${page.url().replace(/#.*/, '')}#/${ours.project}/runs`);
    await page.reload();
    await page.locator('tbody tr').first().waitFor();
    const asked = (): number => requests.filter(({ url }) => url.includes('/runs?')).length;
    const show = (state: string): Promise<void> =>
      page.evaluate((to) => {
        Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => to });
        document.dispatchEvent(new Event('visibilitychange'));
      }, state);
    /** Lets the time of the page pass in steps, so that each answer arrives before the next step. */
    const pass = async (seconds: number): Promise<void> => {
      for (let s = 0; s < seconds; s += 1) {
        await page.clock.runFor(1_000);
        await page.evaluate(() => fetch('/readyz'));
      }
    };
    await pass(20);
    const whileShown = asked();
    expect(whileShown).toBeGreaterThanOrEqual(3);
    await show('hidden');
    // The pause of the shown tab ends first.
    await pass(10);
    const hidden = asked();
    await pass(120);
    expect(asked() - hidden).toBe(2);
    const answered = page.waitForResponse((response) => response.url().includes('/runs?'));
    await show('visible');
    await answered;
  },
  LIMIT_MS,
);
