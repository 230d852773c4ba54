// A gateway with apps that are web servers. The test plays their worker.
import type { IncomingMessage } from 'node:http';
import type { AnswerHead } from '@inference-proxy/contracts';
import { GatewayUnderTest, PROJECT } from './gateway-under-test.ts';
import { app, type PlayedRun } from './played-worker.ts';

export const SITE = `/v4/${PROJECT}/site`;

/** Returns the head of a server's answer. `more` adds headers and replaces the status. */
export const head = (form: AnswerHead['form'], type: string, more: Partial<AnswerHead> = {}): AnswerHead => ({
  status: 200,
  form,
  ...more,
  headers: [['Content-Type', type], ...(more.headers ?? [])],
});
export const SSE = head('sse', 'text/event-stream');
export const JSON_HEAD = head('json', 'application/json');

/** The app `site` is a server, `trusting` has `forward_auth`, `down` is broken, and `chat` has functions. */
export class SiteUnderTest {
  private constructor(readonly gateway: GatewayUnderTest) {}

  static async start(): Promise<SiteUnderTest> {
    const gateway = await GatewayUnderTest.start({ CORS_ORIGINS: 'https://page.example' });
    const server = { kind: 'server', functions: [] } as const;
    await gateway.worker.start(
      app(),
      app({ app: 'site', ...server }),
      app({ app: 'trusting', ...server, forwardAuth: true }),
      app({ app: 'down', ...server, state: 'broken', error: { code: 'app_failed_to_start', message: 'port taken' } }),
    );
    // Announcements arrive with a delay.
    while ((await gateway.store.registry.apps(PROJECT)).size < 4) await new Promise((resolve) => setImmediate(resolve));
    return new SiteUnderTest(gateway);
  }

  /** Sends a GET to the site. Resolves with the answer as soon as its head has arrived. */
  get(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    return this.gateway.open(SITE + path, { method: 'GET', headers });
  }

  /** Waits for the next request to the site, and returns its run. */
  next(): Promise<PlayedRun> {
    return this.gateway.worker.next('site');
  }

  async lookUp(runId: unknown): Promise<Record<string, unknown>> {
    return JSON.parse((await this.gateway.get(`/v4/${PROJECT}/runs/${runId}`)).text);
  }
}
