// A real Chromium with the console over the shared stack.
import { join } from 'node:path';
import { projectRoot } from '@inference-proxy/supervisor';
import { obtainChromium } from '@inference-proxy/test/chromium';
import { test } from '@jest/globals';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';
import { type LosableGateway, losableGateway } from './losable-gateway.ts';

/** The longest time of a test with a browser, in milliseconds. A busy machine starts Chromium slowly. */
export const LIMIT_MS = 120_000;

const obtained = await obtainChromium();
if ('missing' in obtained) console.warn(`skipped: ${obtained.missing}`);
export const testInBrowser: (name: string, body: () => Promise<void>, limitMs: number) => void =
  'missing' in obtained ? test.skip : test;

const appOf = (name: string): string => join(projectRoot(), 'test', 'apps', 'console', name);

/** A page of the console, and what the browser reported about it. */
export interface OpenedPage {
  readonly page: Page;
  /** The URLs of all requests, with the headers of each. */
  readonly requests: { readonly url: string; readonly headers: Record<string, string> }[];
  /** What the Content-Security-Policy refused, and errors of scripts. */
  readonly complaints: string[];
}

export interface OpenOptions extends BrowserContextOptions {
  /** Default: a token of the project with the usual scopes. */
  readonly token?: string;
  /** The project to choose, with a token of several projects. */
  readonly choose?: string;
}

/** The console of a project in the shared stack. */
export interface ConsoleUnderTest extends SharedStack {
  readonly connection: LosableGateway;
  readonly project: string;
  readonly token: string;
  /** Opens a view with the token in the link, as `npm start` prints it. @param view such as `runs` */
  open(view?: string, options?: OpenOptions): Promise<OpenedPage>;
  stop(): Promise<void>;
}

/**
 * @param project a name that no other test file uses
 * @param apps names of apps in `test/apps/console`
 * @param state the state to wait for, by the name of an app; default `ready`
 */
export async function openConsole(
  project: string,
  apps: readonly string[],
  state: Readonly<Record<string, string>> = {},
): Promise<ConsoleUnderTest> {
  const stack = await joinSharedStack(project, apps.map(appOf), state);
  const connection = await losableGateway(stack.port);
  const token = stack.caller.bearer.replace('Bearer ', '');
  let browser: Browser | undefined;
  if ('path' in obtained)
    browser = await chromium.launch({
      executablePath: obtained.path,
      env: { ...(process.env as Record<string, string>), ...obtained.env },
      args: ['--no-sandbox'],
    });
  return {
    ...stack,
    connection,
    project,
    token,
    async open(view = '', { token: given = token, choose, ...options } = {}) {
      const context = await (browser as Browser).newContext({ viewport: { width: 1280, height: 800 }, ...options });
      const page = await context.newPage();
      page.setDefaultTimeout(LIMIT_MS / 2);
      const requests: OpenedPage['requests'] = [];
      const complaints: string[] = [];
      page.on('request', (request) => requests.push({ url: request.url(), headers: request.headers() }));
      page.on('console', (message) => {
        if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      const address = `http://127.0.0.1:${connection.port}/console`;
      await page.goto(`${address}#token=${given}`);
      if (choose !== undefined) await page.getByRole('link', { name: choose }).click();
      await page.getByRole('navigation', { name: 'Views' }).waitFor();
      if (view !== '') await page.goto(`${address}#/${project}/${view}`);
      return { page, requests, complaints };
    },
    async stop() {
      await browser?.close();
      await connection.stop();
      await stack.leave();
    },
  };
}
