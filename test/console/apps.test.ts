// A person looks after apps in the console: a broken app, versions with their build logs, a rollback, secrets, several projects.
import { signToken } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { Deployer } from '../client/deployer.ts';
import { type ConsoleUnderTest, LIMIT_MS, openConsole, testInBrowser } from './browser.ts';

let ours: ConsoleUnderTest;
let deployer: Deployer;
let deployersToken: string;
beforeAll(async () => {
  ours = await openConsole('console-apps', ['shop', 'broken'], { broken: 'broken' });
  deployer = new Deployer(ours.port, ours.jwtSecret, ours.project);
  deployersToken = deployer.caller.bearer.replace('Bearer ', '');
}, LIMIT_MS);
afterAll(() => ours.stop());

const answering = (text: string) => ({
  'main.py': `print("loading ${text}")\ndef say():\n    return "${text}"\n`,
});

testInBrowser(
  'a broken app comes first with its reason, and its page shows what the app printed while it started',
  async () => {
    const { page, complaints } = await ours.open('overview');
    const card = page.locator('.card').first();
    await card.locator('[data-state="broken"]').waitFor();
    await card.getByText('nothing_of_that_name').first().waitFor();
    await card.getByRole('link', { name: 'Log of the last start' }).click();
    const log = page.getByRole('region', { name: 'Lines of the start' });
    await log.getByText('about to import').waitFor();
    await log.getByText('ModuleNotFoundError').waitFor();
    expect(complaints).toEqual([]);
  },
  LIMIT_MS,
);

testInBrowser(
  'versions have build logs and reasons, and a rollback activates an older version',
  async () => {
    const first = await deployer.deploy('notes', answering('one'));
    await deployer.settled('notes', first.version);
    const second = await deployer.deploy('notes', answering('two'));
    await deployer.settled('notes', second.version);
    const wrong = await deployer.deploy('notes', { 'main.py': 'import nothing_of_that_name\n' });
    await deployer.settled('notes', wrong.version);

    const { page, complaints } = await ours.open('apps/notes', { token: deployersToken });
    await page.getByText('1 of 1 replicas ready').waitFor();
    const row = (version: string) =>
      page
        .getByRole('row')
        .filter({ hasText: version.slice(0, 12) })
        .first();
    await row(wrong.version).locator('[data-state="failed"]').waitFor();
    await page.locator('tr.more').getByText('nothing_of_that_name').first().waitFor();
    await row(second.version).locator('[data-state="active"]').waitFor();
    await row(second.version).getByRole('button', { name: 'Build log' }).click();
    await page.getByRole('region', { name: 'Lines of the build log' }).getByText('ready').first().waitFor();
    expect(
      await row(wrong.version)
        .getByRole('button', { name: /Activate|Roll back/ })
        .count(),
    ).toBe(0);

    await row(first.version).getByRole('button', { name: 'Roll back…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
    await row(first.version).locator('[data-state="active"]').waitFor();
    await row(second.version).locator('[data-state="retired"]').waitFor();
    expect((await deployer.call('notes', 'say')).text).toContain('"one"');
    await row(second.version).getByRole('button', { name: 'Activate…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Activate' }).click();
    await row(second.version).locator('[data-state="active"]').waitFor();
    const activations = page.getByRole('region', { name: 'Activations' });
    await activations.getByRole('listitem').nth(3).waitFor();
    await activations.getByText('by ada').first().waitFor();
    expect(complaints).toEqual([]);
  },
  LIMIT_MS,
);

testInBrowser(
  'the names of secrets appear for a token that may deploy, and their values never',
  async () => {
    const { version } = await deployer.deploy('vault', answering('kept'));
    await deployer.settled('vault', version);
    const put = await deployer.caller.request(`${deployer.caller.path}/apps/vault/secrets/API_KEY`, {
      method: 'PUT',
      body: Buffer.from('{"value":"hidden-value"}'),
    });
    expect(put.status).toBe(204);
    const { page } = await ours.open('apps/vault', { token: deployersToken });
    await page.getByRole('region', { name: 'Secrets' }).getByText('API_KEY').waitFor();
    expect(await page.content()).not.toContain('hidden-value');

    const { page: other } = await ours.open('apps/vault');
    await other.getByRole('button', { name: 'Build log' }).waitFor();
    expect(await other.getByRole('region', { name: 'Secrets' }).count()).toBe(0);
    expect(await other.getByRole('button', { name: /Activate|Roll back/ }).count()).toBe(0);
  },
  LIMIT_MS,
);

testInBrowser(
  'a token of several projects opens a choice of projects, and the choice in the head changes the project',
  async () => {
    const more = { project_id: [ours.project, 'console-other'] };
    const token = signToken(ours.jwtSecret, { project: ours.project, ttlS: 600, more });
    const { page } = await ours.open('', { token, choose: ours.project });
    await page.getByRole('link', { name: 'shop', exact: true }).waitFor();
    await page.getByLabel('Project').selectOption('console-other');
    await page.getByText('The project has no app yet.').waitFor();
    expect(page.url()).toContain('#/console-other');
  },
  LIMIT_MS,
);
