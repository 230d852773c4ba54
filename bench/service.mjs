// Shared by the benchmarks: the running service (BASE_URL, TOKEN, PIDS), calls, streams, a receiver, and figures.
import { once } from 'node:events';
import http from 'node:http';

export * from './figures.mjs';

const { BASE_URL = 'http://127.0.0.1:8080', TOKEN, PROJECT = 'demo', APP = 'bench' } = process.env;
if (TOKEN === undefined) throw new Error('set TOKEN: npm run --silent token -- --project demo');

const agent = new http.Agent({ keepAlive: true, maxSockets: 512 });
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

/** Sends a request. Resolves with the complete answer. */
export async function request(path, { method = 'GET', body, more = {}, project = PROJECT } = {}) {
  const answer = await open(path, { method, body, more, project });
  const chunks = [];
  for await (const chunk of answer) chunks.push(chunk);
  return { status: answer.statusCode, headers: answer.headers, text: Buffer.concat(chunks).toString() };
}

/** Sends a request. Resolves with the answer's head and leaves its body unread. */
export async function open(path, { method = 'GET', body, more = {}, own = false, project = PROJECT } = {}) {
  const options = { method, agent: own ? false : agent, headers: { ...headers, ...more } };
  const sent = http.request(`${BASE_URL}/v4/${project}${path}`, options);
  sent.end(body);
  const [answer] = await once(sent, 'response');
  return answer;
}

export const call = (fn, params = {}, query = '', more = {}, project = PROJECT) =>
  request(`/${APP}/${fn}${query}`, { method: 'POST', body: JSON.stringify(params), more, project });

export const stream = (fn, params = {}, query = '', more = {}) =>
  open(`/${APP}/${fn}${query}`, {
    method: 'POST',
    body: JSON.stringify(params),
    more: { accept: 'text/event-stream', ...more },
    own: true,
  });

/** Starts an asynchronous run and waits for its end. Returns its id. */
export async function ended(fn, params) {
  const { run_id: runId } = JSON.parse((await call(fn, params, '?async=true')).text);
  while (true) {
    const { status } = JSON.parse((await request(`/runs/${runId}`)).text);
    if (status !== 'queued' && status !== 'running') return runId;
    await pause(50);
  }
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts a receiver on a free port. `onDelivery` gets the parsed envelope and the time when it was complete, Unix ms. */
export async function receiver(onDelivery) {
  const server = http.createServer(async (got, answer) => {
    const chunks = [];
    for await (const chunk of got) chunks.push(chunk);
    onDelivery(JSON.parse(Buffer.concat(chunks).toString()), Date.now());
    answer.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

export const hook = (url) => `?async=true&webhookEndpoint=${encodeURIComponent(url)}`;

/** Runs `work(i)` for 0 to n-1, at most `width` at a time. */
export async function each(n, width, work) {
  let next = 0;
  const lane = async () => {
    while (next < n) await work(next++);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** Starts `work(i)` n times, evenly at `perSecond`, without waiting for earlier work. Resolves when all work is done. */
export async function paced(n, perSecond, work) {
  const startedAt = performance.now();
  const running = [];
  for (let i = 0; i < n; i++) {
    await pause(Math.max(0, startedAt + (i * 1000) / perSecond - performance.now()));
    running.push(work(i));
  }
  await Promise.all(running);
}
