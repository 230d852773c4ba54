// Every view of the console: accessibility, small screens, the keyboard alone, hostile content, a lost gateway.
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { type ConsoleUnderTest, LIMIT_MS, openConsole, testInBrowser } from './browser.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let ours: ConsoleUnderTest;
/** By name: a view of each kind, and a text that shows that the view has loaded. */
let views: Record<string, readonly [view: string, text: string]>;
beforeAll(async () => {
  ours = await openConsole('console-everywhere', ['shop', 'hostile', 'broken'], { broken: 'broken' });
  const run = async (fn: string, params: object = {}): Promise<string> => {
    const { headers } = await ours.caller.call(fn, params, { query: '?onDisconnect=continue' });
    return String(headers['x-request-id']);
  };
  views = {
    overview: ['overview', 'nothing_of_that_name'],
    runs: ['runs', 'shop/fails'],
    'an ended stream': [`runs/${await run('hostile/items')}`, 'Items 2'],
    'a failed run': [`runs/${await run('shop/fails', { text: 'no pens' })}`, 'no pens'],
    'a result': [`runs/${await run('hostile/value')}`, 'Result'],
    form: ['try/shop/order', 'Name of the customer.'],
    webhooks: ['webhooks', 'No delivery matches'],
    'an app': ['apps/shop', 'Takes an order.'],
  };
}, LIMIT_MS);
afterAll(() => ours.stop());

interface AxeResult {
  readonly violations: readonly { id: string; nodes: readonly { html: string; failureSummary: string }[] }[];
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const result = await page.evaluate('axe.run(document, {resultTypes: ["violations"]})');
  return (result as AxeResult).violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}

testInBrowser(
  'axe finds nothing in any view, light and dark, wide and at 360 px, and no view is wider than 360 px',
  async () => {
    const found: object[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      const width = colorScheme === 'light' ? 1280 : 360;
      const { page, complaints } = await ours.open('', { colorScheme, viewport: { width, height: 740 } });
      for (const [name, [view, text]] of Object.entries(views)) {
        await page.goto(page.url().replace(/#.*/, `#/${ours.project}/${view}`));
        await page.getByText(text).first().waitFor();
        const scrolled = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        const wrong = await violations(page);
        if (wrong.length > 0 || scrolled !== 0) found.push({ name, colorScheme, wrong, scrolled });
      }
      expect(complaints).toEqual([]);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Token').waitFor();
      const wrong = await violations(page);
      if (wrong.length > 0) found.push({ name: 'sign-in', colorScheme, wrong });
      await page.context().close();
    }
    expect(found).toEqual([]);
  },
  LIMIT_MS,
);

testInBrowser(
  'markup in items, names, lines and errors is shown as text and never runs',
  async () => {
    const { page, complaints } = await ours.open('');
    for (const fn of ['items', 'value', 'fails']) {
      const answer = await ours.caller.call(`hostile/${fn}`, {}, { query: '?onDisconnect=continue' });
      await page.goto(page.url().replace(/#.*/, `#/${ours.project}/runs/${answer.headers['x-request-id']}`));
      await page.getByText('<img src=x').first().waitFor();
    }
    await page.goto(page.url().replace(/#.*/, `#/${ours.project}/apps/hostile`));
    await page.getByText('<b onmouseover').first().waitFor();
    await page.goto(page.url().replace(/#.*/, `#/${ours.project}/try/hostile/value`));
    await page.getByText('<img src=x').or(page.getByPlaceholder('<img src=x')).first().waitFor();
    expect(await page.locator('main img, main script, main b').count()).toBe(0);
    expect(await page.title()).not.toBe('owned');
    expect(complaints).toEqual([]);
  },
  LIMIT_MS,
);

/** Presses Tab until the element with the name has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate(() => {
      const { ariaLabel, textContent, id } = document.activeElement as HTMLElement;
      return ariaLabel ?? (textContent?.trim() || document.querySelector(`label[for="${id}"]`)?.textContent);
    });
    if (focused?.startsWith(name)) return;
  }
  throw new Error(`Tab never reached ${name}`);
}

testInBrowser(
  'the keyboard alone opens the console, calls a function, watches its run and chooses an item',
  async () => {
    const { page } = await ours.open('');
    await tabTo(page, 'Sign out');
    await page.keyboard.press('Enter');
    await page.getByLabel('Token').waitFor();
    await page.getByLabel('Token').focus();
    await page.keyboard.insertText(ours.token);
    await page.keyboard.press('Enter');
    await tabTo(page, 'Try');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Try a function' }).waitFor();
    await tabTo(page, 'choose…');
    await page.keyboard.type('shop/numbers');
    await page.getByRole('heading', { name: 'shop/numbers' }).waitFor();
    await page.getByLabel('n', { exact: true }).focus();
    await page.keyboard.type('5');
    await tabTo(page, 'Call');
    await page.keyboard.press('Enter');
    await page.getByText('the stream ended').waitFor();
    await tabTo(page, 'Items');
    await page.keyboard.press('End');
    await page.getByRole('region', { name: 'Item 5' }).waitFor();
  },
  LIMIT_MS,
);

testInBrowser(
  'a lost gateway is reported, and the page recovers with every item of its stream',
  async () => {
    const gate = join(ours.marksDir, 'lost');
    await mkdir(gate);
    const { text } = await ours.caller.call('shop/gated', { gate, n: 3 }, { query: '?async=true' });
    const { page } = await ours.open(`runs/${JSON.parse(text).run_id}`);
    const items = page.getByRole('listbox', { name: 'Items' });
    await writeFile(join(gate, '0'), '');
    await items.getByText('item 0', { exact: true }).waitFor();
    await ours.connection.lose();
    await page.getByText('The gateway does not answer.').waitFor();
    await writeFile(join(gate, '1'), '');
    await ours.connection.recover();
    await page.getByText('The gateway answers again.').waitFor();
    await items.getByText('item 1', { exact: true }).waitFor();
    await writeFile(join(gate, '2'), '');
    await page.locator('header .status[data-state="succeeded"]').waitFor();
    expect(await items.locator('.text').allTextContents()).toEqual(['item 0', 'item 1', 'item 2']);
  },
  LIMIT_MS,
);

testInBrowser(
  'the theme follows the system, and the choice of a person stays',
  async () => {
    const { page } = await ours.open('', { colorScheme: 'dark' });
    const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await ground();
    await page.getByRole('button', { name: 'Theme' }).click();
    const light = await ground();
    expect(light).not.toBe(dark);
    await page.reload();
    expect(await ground()).toBe(light);
  },
  LIMIT_MS,
);
