// A person corrects webhooks in the console: deliveries with their attempts, one redelivery, and all that match.
import { receiver } from '@inference-proxy/test/receiver';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { type ConsoleUnderTest, LIMIT_MS, openConsole, testInBrowser } from './browser.ts';

let ours: ConsoleUnderTest;
beforeAll(async () => {
  ours = await openConsole('console-webhooks', ['shop']);
}, LIMIT_MS);
afterAll(() => ours.stop());

testInBrowser(
  'a call with a webhook and a secret from the form is delivered, fails, and is redelivered from the page of its run',
  async () => {
    let well = false;
    const hook = await receiver(() => ({ status: well ? 204 : 410 }));
    const { page, complaints } = await ours.open('try/shop/numbers');
    await page.getByLabel('n', { exact: true }).fill('2');
    await page.getByLabel('Async').check();
    await page.getByText('Webhook', { exact: true }).click();
    await page.getByLabel('URL of the receiver').fill(hook.url);
    await page.getByLabel('Secret that signs the delivery').fill('test-secret');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('link', { name: 'Open the run' }).click();

    const webhook = page.getByRole('region', { name: 'Webhook' });
    await webhook.locator('[data-state="failed"]').waitFor();
    await webhook.getByText('410', { exact: true }).waitFor();
    await page.getByRole('region', { name: 'Timeline' }).getByText('webhook 1', { exact: true }).waitFor();
    expect(hook.requests[0]?.headers['x-service-webhook-signature']).toMatch(/^v1,/);
    well = true;
    await webhook.getByRole('button', { name: 'Redeliver' }).click();
    await webhook.locator('[data-state="delivered"]').waitFor();
    await webhook.getByText('Attempt 2').waitFor();
    expect(hook.requests).toHaveLength(2);
    expect(complaints).toEqual([]);
    await hook.close();
  },
  LIMIT_MS,
);

testInBrowser(
  'all failed deliveries of one receiver are redelivered after the page has shown their number',
  async () => {
    let well = false;
    const hook = await receiver(() => ({ status: well ? 204 : 410 }));
    const query = `?async=true&webhookEndpoint=${encodeURIComponent(hook.url)}`;
    for (let n = 0; n < 3; n += 1) await ours.caller.call('shop/quick', { n }, { query });
    const { page } = await ours.open(`webhooks?host=127.0.0.1:${hook.port}`);
    const states = (state: string) => page.locator(`tbody [data-state="${state}"]`);
    await states('failed').nth(2).waitFor();
    await page.getByRole('button', { name: '1 attempt' }).first().click();
    await page.getByText('Attempt 1').waitFor();
    well = true;
    await page.getByRole('button', { name: 'Redeliver all…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('3 failed deliveries').waitFor();
    expect(hook.requests).toHaveLength(3);
    await dialog.getByRole('button', { name: 'Redeliver 3' }).click();
    await dialog.getByText('3 redeliveries were requested.').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await states('delivered').nth(2).waitFor();
    expect(hook.requests).toHaveLength(6);
    await hook.close();
  },
  LIMIT_MS,
);

testInBrowser(
  'a receiver that fails is listed with its circuit and its queue, and its link filters the deliveries',
  async () => {
    const hook = await receiver(() => ({ status: 503 }));
    const query = `?async=true&webhookEndpoint=${encodeURIComponent(hook.url)}`;
    // The circuit opens after 20 failures in a row. Later deliveries are parked.
    for (let n = 0; n < 25; n += 1) await ours.caller.call('shop/quick', { n }, { query });
    const { page, complaints } = await ours.open('webhooks');
    const row = page
      .getByRole('region', { name: 'Receivers with open work' })
      .locator('tbody tr', { hasText: `:${hook.port}` });
    await row.locator('[data-state="open"]').waitFor();
    await row
      .locator('td[data-label="Parked"]')
      .filter({ hasText: /^[1-9]/ })
      .waitFor();
    await row.getByRole('link').click();
    expect(page.url()).toContain(encodeURIComponent(`127.0.0.1:${hook.port}`));
    await page.locator('tbody [data-state="parked"]').first().waitFor();
    await page
      .getByRole('button', { name: /attempt/ })
      .first()
      .waitFor();
    expect(complaints).toEqual([]);
    await hook.close();
  },
  LIMIT_MS,
);
