// A person repeats an ended run in the console: again, with edited parameters, and from a terminal.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { type ConsoleUnderTest, LIMIT_MS, openConsole, testInBrowser } from './browser.ts';

const run = promisify(execFile);

let ours: ConsoleUnderTest;
beforeAll(async () => {
  ours = await openConsole('console-again', ['shop']);
}, LIMIT_MS);
afterAll(() => ours.stop());

const ADDRESS = { street: "Rue de l'Été 1" };
const ORDER = { customer: 'Ada', items: [{ name: 'pen', count: 3 }], address: ADDRESS };

async function ended(fn: string, params: object): Promise<string> {
  const { text } = await ours.caller.call(`shop/${fn}`, params, { query: '?async=true' });
  const { run_id: id } = JSON.parse(text);
  await ours.caller.ended(id);
  return id;
}

testInBrowser(
  'the page of an ended run shows its parameters, repeats the run, and opens the form with the parameters',
  async () => {
    const first = await ended('order', ORDER);
    const { page } = await ours.open(`runs/${first}`);
    const parameters = page.getByRole('region', { name: 'Parameters' });
    await parameters.getByText('"Rue de l\'Été 1"').waitFor();
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.waitForURL((url) => !url.hash.includes(first));
    await page.locator('header .status[data-state="succeeded"]').waitFor();
    await page.getByRole('region', { name: 'Result' }).getByText('"Ada"').waitFor();
    await parameters.getByText('"Ada"').waitFor();

    await page.getByRole('button', { name: 'Edit and run' }).click();
    await page.getByLabel('customer').waitFor();
    expect(await page.getByLabel('customer').inputValue()).toBe('Ada');
    expect(await page.getByLabel('street').inputValue()).toBe(ADDRESS.street);
    await page.getByLabel('customer').fill('Grace');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('region', { name: 'Answer' }).first().getByText('"Grace"').waitFor();
  },
  LIMIT_MS,
);

testInBrowser(
  'large parameters are folded, and parameters over 64 KiB are absent after the end',
  async () => {
    const { page } = await ours.open(`runs/${await ended('fails', { text: 'x'.repeat(5_000) })}`);
    const folded = page.getByRole('region', { name: 'Parameters' }).locator('details').first();
    await folded.locator('summary').first().waitFor();
    expect(await folded.getAttribute('open')).toBeNull();
    const { page: other } = await ours.open(`runs/${await ended('fails', { text: 'x'.repeat(70_000) })}`);
    await other.getByRole('region', { name: 'Error of the run' }).waitFor();
    await other.getByText('Parameters over 64 KiB').waitFor();
    expect(await other.getByRole('button', { name: 'Run again' }).count()).toBe(0);
  },
  LIMIT_MS,
);

testInBrowser(
  'the copied curl, Python and TypeScript repeat the call and have no token',
  async () => {
    const { page } = await ours.open(`runs/${await ended('order', ORDER)}`);
    await page.getByRole('button', { name: 'Copy call…' }).click();
    const texts = await page.getByRole('dialog').locator('.snippet').allTextContents();
    const [curl, python, typescript] = texts as [string, string, string];
    const env = { ...process.env, INFERENCE_PROXY_TOKEN: ours.token };
    for (const [program, args] of [
      ['sh', ['-c', curl]],
      ['python3', ['-c', python]],
      [process.execPath, ['--input-type=module-typescript', '-e', typescript]],
    ] as const) {
      const { stdout } = await run(program, [...args], { env });
      expect(stdout).toContain('Ada');
    }
    expect(texts.join('\n')).not.toContain(ours.token);
  },
  LIMIT_MS,
);
