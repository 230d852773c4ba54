// A person watches runs in the console: the list, a live stream, a cancel, many items.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { type ConsoleUnderTest, LIMIT_MS, openConsole, testInBrowser } from './browser.ts';

let ours: ConsoleUnderTest;
beforeAll(async () => {
  ours = await openConsole('console-runs', ['shop']);
}, LIMIT_MS);
afterAll(() => ours.stop());

/** Accepts a run that does not wait. */
async function accepted(fn: string, params: object = {}, query = ''): Promise<string> {
  const answer = await ours.caller.call(`shop/${fn}`, params, { query: `?async=true${query}` });
  expect(answer.status).toBe(202);
  return JSON.parse(answer.text).run_id;
}

const status = (page: Page, state: string): Promise<void> =>
  page.locator(`header .status[data-state="${state}"]`).waitFor();

testInBrowser(
  'the token of the link moves to session storage, leaves the address, and is in no URL that the gateway receives',
  async () => {
    const { page, requests, complaints } = await ours.open();
    await page.getByRole('link', { name: 'shop' }).waitFor();
    expect(page.url()).not.toContain(ours.token);
    const kept = await page.evaluate(() => ({
      session: Object.values(sessionStorage),
      local: Object.values(localStorage).join(),
    }));
    expect(kept.session).toContain(ours.token);
    expect(kept.local).not.toContain(ours.token);
    expect(requests.filter(({ url }) => url.includes(ours.token))).toEqual([]);
    const own = `http://127.0.0.1:${ours.connection.port}/`;
    expect(requests.filter(({ url }) => !url.startsWith(own))).toEqual([]);
    expect(requests.some(({ headers }) => headers.authorization === `Bearer ${ours.token}`)).toBe(true);
    expect(complaints).toEqual([]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').fill('no token');
    await page.getByRole('button', { name: 'Open the console' }).click();
    await page.getByText('This text is not a JWT').waitFor();
    await page.getByLabel('Token').fill(`${ours.token}x`);
    await page.getByRole('button', { name: 'Open the console' }).click();
    await page.getByText('The gateway refused the token').waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  },
  LIMIT_MS,
);

testInBrowser(
  'a stream is watched live: each item and each line appears when the function makes it, and a pause loses none',
  async () => {
    const gate = join(ours.marksDir, 'watched');
    await mkdir(gate);
    const runId = await accepted('gated', { gate, n: 4 });
    const { page, complaints } = await ours.open(`runs/${runId}`);
    await status(page, 'running');
    const items = page.getByRole('listbox', { name: 'Items' });
    const lines = page.getByRole('listbox', { name: 'Log lines' });
    await writeFile(join(gate, '0'), '');
    await items.getByText('item 0', { exact: true }).waitFor();
    await lines.getByText('line 0', { exact: true }).waitFor();

    await page.getByRole('button', { name: 'Pause' }).click();
    await writeFile(join(gate, '1'), '');
    await writeFile(join(gate, '2'), '');
    await page.getByText('2 more arrived').waitFor();
    expect(await items.getByRole('option').count()).toBe(1);
    await page.getByRole('button', { name: 'Resume' }).click();
    await items.getByText('item 2', { exact: true }).waitFor();

    await writeFile(join(gate, '3'), '');
    await status(page, 'succeeded');
    const texts = await items.locator('.text').allTextContents();
    expect(texts).toEqual(['item 0', 'item 1', 'item 2', 'item 3']);
    await lines.getByText('line 3', { exact: true }).waitFor();
    for (const bar of ['queued', 'until first item', 'items'])
      await page.getByRole('region', { name: 'Timeline' }).getByText(bar, { exact: true }).waitFor();
    expect(complaints).toEqual([]);
  },
  LIMIT_MS,
);

testInBrowser(
  'the button `Cancel` ends a running run',
  async () => {
    const runId = await accepted('gated', { gate: join(ours.marksDir, 'never') });
    const { page } = await ours.open(`runs/${runId}`);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await status(page, 'cancelled');
    expect((await ours.caller.ended(runId)).status).toBe('cancelled');
    await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' });
  },
  LIMIT_MS,
);

testInBrowser(
  '10,000 items are shown, and the page has only the rows that are visible',
  async () => {
    const runId = await accepted('numbers', { n: 10_000 });
    await ours.caller.ended(runId);
    const { page } = await ours.open(`runs/${runId}`);
    const items = page.getByRole('listbox', { name: 'Items' });
    await page.getByRole('heading', { name: 'Items 10,000' }).waitFor();
    await items.getByText('{"number":0,"square":0}', { exact: true }).waitFor();
    expect(await items.getByRole('option').count()).toBeLessThan(100);
    await items.focus();
    await page.keyboard.press('End');
    await items.getByText('{"number":9999,"square":99980001}', { exact: true }).waitFor();
    expect(await items.getByRole('option').count()).toBeLessThan(100);
    // The chosen item is shown as a whole.
    await page.getByRole('region', { name: 'Item 10000', exact: true }).getByText('9999', { exact: true }).waitFor();
  },
  LIMIT_MS,
);

testInBrowser(
  'the list shows new runs, filters by state, and pages without a gap while runs arrive',
  async () => {
    const failed = await ours.caller.call('shop/fails', { text: 'out of pens' });
    expect(failed.status).toBe(500);
    for (let n = 0; n < 60; n += 1) await accepted('quick', { n });
    const { page } = await ours.open('runs?function=quick');
    await page.getByRole('button', { name: 'Load older runs' }).click();
    await page.locator('tbody tr').nth(59).waitFor();
    // A run that arrives now is announced, and the rows stay in place.
    const last = await accepted('quick', { n: 60 });
    await page.getByRole('button', { name: 'Show 1 new run' }).click();
    const ids = await page.locator('tbody small').allTextContents();
    expect(ids[0]).toBe(last);
    expect(new Set(ids).size).toBe(61);
    expect(ids).toEqual(ids.toSorted().reverse());

    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('State').selectOption('failed');
    await page.getByRole('link', { name: 'shop/fails' }).click();
    await page.getByRole('region', { name: 'Error of the run' }).getByText('out of pens', { exact: true }).waitFor();
    await page.locator('.trace', { hasText: 'raise ValueError(text)' }).waitFor();
  },
  LIMIT_MS,
);
