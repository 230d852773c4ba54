// Contract 3 and 5, "Resuming": SSE clients as their packages are, cut three times by the network.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { fetchEventSource } from '@microsoft/fetch-event-source';
import { EventSource, type FetchLike } from 'eventsource';
import reconnecting from 'reconnecting-eventsource';
import { Caller } from '../client/caller.ts';
import { type CuttingProxy, cuttingProxy } from '../client/cutting-proxy.ts';
import { startTestStack, type TestStack } from '../stack/test-stack.ts';
import { signToken } from '../stack/tokens.ts';

/** Its types describe another build than the one that is imported. */
const Reconnecting = reconnecting as unknown as typeof reconnecting.default;

const N = 120;
/** Within an item, within the head of an answer, and within an item again. */
const CUTS = [8_011, 97, 12_009];
/** Long enough, also when they are compressed. */
const ITEMS = Array.from(
  { length: N },
  (_, n) => `${n} ${createHash('shake256', { outputLength: 500 }).update(String(n)).digest('hex')}`,
);
const BODY = { items: ITEMS };

let stack: TestStack;
let caller: Caller;
let authorization: string;
beforeAll(async () => {
  stack = await startTestStack({ env: { WORKER_APPS: 'demo/streams' } });
  caller = new Caller(stack.port, stack.jwtSecret);
  authorization = `Bearer ${signToken(stack.jwtSecret, { project: 'demo', ttlS: 3600, more: {} })}`;
  await caller.ready('streams');
});
afterAll(() => stack.stop());

let proxy: CuttingProxy;
let url: string;
beforeEach(async () => {
  let connections = 0;
  proxy = await cuttingProxy(stack.port, () => CUTS[connections++] ?? Number.POSITIVE_INFINITY);
  url = `http://127.0.0.1:${proxy.port}/v4/demo/`;
});
afterEach(async () => {
  await proxy.close();
  expect(proxy.cuts).toBe(CUTS.length);
});

const runs = async (): Promise<number> => {
  const { text } = await caller.request('/v4/demo/runs?limit=100', { method: 'GET' });
  return (JSON.parse(text) as { runs: object[] }).runs.length;
};

/** The path of the stream of a run that its caller has left. */
async function started(): Promise<string> {
  const { text } = await caller.call('streams/items', BODY, { query: '?async=true' });
  const { run_id: runId } = JSON.parse(text) as { run_id: string };
  return `runs/${runId}/stream`;
}

/** Headers of a call that joins its run when it is made again. */
const joining = (key: string): Record<string, string> => ({
  authorization,
  accept: 'text/event-stream',
  'content-type': 'application/json',
  'idempotency-key': key,
});

describe('a client that sends its POST again under its `Idempotency-Key` has every item once, of one run:', () => {
  let before: number;
  beforeEach(async () => {
    before = await runs();
  });
  afterEach(async () => expect(await runs()).toBe(before + 1));

  test('@microsoft/fetch-event-source, with a `fetch` that names the last whole event', async () => {
    const delays: (number | undefined)[] = [];
    // The package is made for pages.
    Object.assign(globalThis, {
      document: new EventTarget(),
      window: {
        clearTimeout,
        setTimeout: (again: () => void, ms: number) => {
          delays.push(ms);
          return setTimeout(again, 1);
        },
      },
    });
    const data: string[] = [];
    let last: string | undefined;
    await fetchEventSource(`${url}streams/items?ids=true`, {
      method: 'POST',
      headers: joining('fetch-event-source'),
      body: JSON.stringify(BODY),
      openWhenHidden: true,
      // By itself the package names the last `id:` line that it saw, also of an event that was cut before its data.
      fetch: (input, init) => {
        const headers = new Headers(init?.headers);
        if (last === undefined) headers.delete('last-event-id');
        else headers.set('last-event-id', last);
        return fetch(input, { ...init, headers });
      },
      onmessage: (message) => {
        last = message.id;
        // The package also reports blocks without data: the first lines of a stream, and comments.
        if (message.data !== '') data.push(message.data);
      },
    });
    expect(data).toEqual(ITEMS);
    expect(delays).toEqual([1000, 1000, 1000]);
  });

  test('the SSE client that @hey-api/openapi-ts puts into a generated client', async () => {
    const { createClient } = await heyApiClient();
    const delays: number[] = [];
    const { stream } = await createClient({ baseUrl: url }).sse.post({
      url: 'streams/items?ids=true',
      headers: joining('hey-api'),
      body: BODY,
      sseMaxRetryAttempts: CUTS.length + 1,
      sseSleepFn: async (ms) => void delays.push(ms),
    });
    const data: string[] = [];
    for await (const item of stream) data.push(item);
    expect(data).toEqual(ITEMS);
    // From `retry: 1000`, and doubled at each attempt; its own default is 3 s.
    expect(delays).toEqual([1000, 2000, 4000]);
  });

  test('eventsource, with a `fetch` that posts', async () => {
    const source = new EventSource(`${url}streams/items?ids=true`, {
      fetch: (address, init) =>
        fetch(address, {
          ...init,
          method: 'POST',
          body: JSON.stringify(BODY),
          headers: { ...init.headers, ...joining('eventsource') },
        }),
    });
    expect(await itemsOf(source)).toEqual(ITEMS);
  });
});

describe('a client that reads the stream of a run has every item once:', () => {
  const withToken: FetchLike = (address, init) =>
    fetch(address, { ...init, headers: { ...init.headers, authorization } });

  test('eventsource', async () => {
    expect(await itemsOf(new EventSource(url + (await started()), { fetch: withToken }))).toEqual(ITEMS);
  });

  test('reconnecting-eventsource, which makes a new EventSource when a balancer has no gateway for the old one', async () => {
    const addresses: string[] = [];
    class Unlucky extends EventSource {
      constructor(address: string | URL) {
        let requests = 0;
        super(address, {
          fetch: async (...request) =>
            requests++ === 0 ? withToken(...request) : new Response('no gateway', { status: 502 }),
        });
        addresses.push(String(address));
      }
    }
    const source = new Reconnecting(url + (await started()), {
      eventSourceClass: Unlucky as unknown as typeof globalThis.EventSource,
      max_retry_time: 10,
    });
    expect(await itemsOf(source)).toEqual(ITEMS);
    expect(addresses).toHaveLength(1 + CUTS.length);
    expect(addresses.at(-1)).toMatch(/\?lastEventId=\d+$/);
  });
});

interface Messages {
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
  close(): void;
}

/** Data of all items; then the source is closed, because reconnecting-eventsource connects again after a 204. */
function itemsOf(source: Messages): Promise<string[]> {
  const data: string[] = [];
  return new Promise((resolve) => {
    source.addEventListener('message', (event) => {
      data.push(String(event.data));
      if (data.length === N) {
        source.close();
        resolve(data);
      }
    });
  });
}

interface HeyApi {
  createClient(config: { readonly baseUrl: string }): {
    readonly sse: {
      post(options: {
        readonly url: string;
        readonly headers: object;
        readonly body: object;
        readonly sseMaxRetryAttempts: number;
        readonly sseSleepFn: (ms: number) => Promise<void>;
      }): Promise<{ readonly stream: AsyncIterable<string> }>;
    };
  };
}

/** The files that the generator copies. The generator itself needs an older TypeScript than ours. */
function heyApiClient(): Promise<HeyApi> {
  const generator = fileURLToPath(import.meta.resolve('@hey-api/openapi-ts'));
  return import(generator.replace(/[^/]+$/, 'clients/fetch/index.ts')) as Promise<HeyApi>;
}
