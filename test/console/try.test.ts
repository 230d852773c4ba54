// A person calls functions from the console: the form from the schema, files, wrong parameters, streams, and a run again.
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { type ConsoleUnderTest, LIMIT_MS, openConsole, testInBrowser } from './browser.ts';

let ours: ConsoleUnderTest;
beforeAll(async () => {
  ours = await openConsole('console-try', ['shop']);
}, LIMIT_MS);
afterAll(() => ours.stop());

const answer = (page: Page) => page.getByRole('region', { name: 'Answer' }).first();
const press = (page: Page): Promise<void> => page.getByRole('button', { name: 'Call', exact: true }).click();

testInBrowser(
  'the form has nested objects, lists, choices, defaults and descriptions, and shows each error of a 422 at its field',
  async () => {
    const { page, complaints } = await ours.open('try/shop/order');
    await page.getByText('Name of the customer.').waitFor();
    await page.getByLabel('weight').fill('heavy');
    await page.getByRole('button', { name: 'Add to items' }).click();
    await press(page);
    const errorOf = (name: string) => page.locator('.field', { hasText: name }).locator('.wrong');
    await errorOf('street').filter({ hasText: 'Field required' }).first().waitFor();
    await errorOf('customer').filter({ hasText: 'Field required' }).first().waitFor();
    await errorOf('weight').filter({ hasText: 'number' }).first().waitFor();
    expect(await page.getByLabel('weight').getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByLabel('city').getAttribute('placeholder')).toBe('default: "Berlin"');

    await page.getByLabel('customer').fill('Ada');
    await page.getByLabel('street').fill('Main 1');
    await page.getByLabel('weight').fill('1.5');
    await page.getByLabel('size').selectOption('large');
    await page.getByLabel('express').selectOption('true');
    const first = page.getByRole('group', { name: 'items 1' });
    await first.getByLabel('name').fill('pen');
    await first.getByLabel('count').fill('3');
    await press(page);
    await answer(page).getByText('200', { exact: true }).waitFor();
    await answer(page).getByText('"large"').waitFor();
    await answer(page).getByText('"Berlin"').waitFor();
    await answer(page).locator('summary', { hasText: 'headers' }).click();
    await answer(page).getByText('x-request-id', { exact: true }).waitFor();

    // The same values as raw JSON.
    await page.getByLabel('Raw JSON').check();
    const raw = page.getByLabel('Parameters as JSON');
    expect(JSON.parse(await raw.inputValue())).toEqual({
      customer: 'Ada',
      items: [{ name: 'pen', count: 3 }],
      address: { street: 'Main 1' },
      size: 'large',
      express: true,
      weight: 1.5,
    });
    await raw.fill('{"customer": ');
    await page.getByText('The text is not a JSON object.').waitFor();
    expect(await page.getByRole('button', { name: 'Call', exact: true }).isDisabled()).toBe(true);
    expect(complaints).toEqual([]);
  },
  LIMIT_MS,
);

testInBrowser(
  'a file is sent as a form',
  async () => {
    const { page } = await ours.open('try/shop/measure');
    await page
      .getByLabel('photo')
      .setInputFiles({ name: 'cat.png', mimeType: 'image/png', buffer: Buffer.alloc(1234) });
    await page.getByLabel('label').fill('cat');
    await press(page);
    await answer(page).getByText('1234', { exact: true }).waitFor();
    await answer(page).getByText('"cat"', { exact: true }).waitFor();
  },
  LIMIT_MS,
);

testInBrowser(
  'a stream, a picture and an accepted run are each shown in their form',
  async () => {
    const { page } = await ours.open('try/shop/numbers');
    await page.getByLabel('n', { exact: true }).fill('3');
    await press(page);
    await answer(page).getByText('{"number":2,"square":4}', { exact: true }).waitFor();
    await answer(page).getByText('the stream ended').waitFor();
    await page.getByLabel('Async').check();
    await press(page);
    await answer(page).getByText('202', { exact: true }).waitFor();
    await answer(page).getByRole('link', { name: 'Open the run' }).click();
    await page.getByRole('heading', { name: 'Items 3' }).waitFor();

    await page.goto(page.url().replace(/#.*/, `#/${ours.project}/try/shop/picture`));
    await press(page);
    const picture = answer(page).getByRole('img', { name: 'The answer as image/png' });
    await picture.waitFor();
    await expect(
      picture.evaluate((image: HTMLImageElement) => image.decode().then(() => image.naturalWidth)),
    ).resolves.toBe(1);
  },
  LIMIT_MS,
);
