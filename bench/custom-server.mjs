// Contract 1, "Custom runtimes": compares calls and streams of a web server through the service with direct ones. Measures a change's rollout.
import { once } from 'node:events';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { each, open, pause, percentiles, report, request, round } from './service.mjs';

const APP = '/served';
const calls = Number(process.env.CALLS ?? 3000);
const items = Number(process.env.ITEMS ?? 200_000);
const body = '{"hello":"server"}';

const where = async () => JSON.parse((await request(`${APP}/where`)).text);
const { port } = await where();
const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

async function direct(path, options = {}) {
  const sent = http.request({ host: '127.0.0.1', port, path, agent, ...options });
  sent.end(options.body);
  const [answer] = await once(sent, 'response');
  return answer;
}

async function whole(answer) {
  let bytes = 0;
  for await (const chunk of answer) bytes += chunk.length;
  if (answer.statusCode !== 200) throw new Error(`the server answered ${answer.statusCode} instead of 200`);
  return bytes;
}

const ways = {
  direct: async (path, options) => whole(await direct(path, options)),
  through: async (path, options) => whole(await open(APP + path, options)),
};
const post = { method: 'POST', body, headers: { 'content-type': 'application/json', 'content-length': body.length } };

async function called(way, width, count) {
  const ms = [];
  const startedAt = performance.now();
  await each(count, width, async () => {
    const at = performance.now();
    await ways[way]('/', post);
    ms.push(performance.now() - at);
  });
  return { ms: percentiles(ms), perSecond: round(count / ((performance.now() - startedAt) / 1000)) };
}

async function streamed(way) {
  const startedAt = performance.now();
  const bytes = await ways[way](`/items?count=${items}`);
  if (bytes < items * 64) throw new Error(`${bytes} bytes came, which are fewer than ${items} items`);
  return round(items / ((performance.now() - startedAt) / 1000));
}

// Alternates the two ways, so that both run under the same load of the machine.
for (const way of ['direct', 'through', 'direct', 'through']) await called(way, 32, calls);
for (const way of ['direct', 'through', 'direct', 'through']) {
  const { ms } = await called(way, 1, calls / 2);
  report({ way, atOnce: 1, ms });
  const { perSecond } = await called(way, 32, calls * 2);
  report({ way, atOnce: 32, perSecond });
  report({ way, itemsPerSecond: await streamed(way) });
}

/** A service in production does not watch its folders. */
const WATCHED_MS = 20_000;

/** Returns ms from a saved change to the first answer of the new server: watch, start and first good check. undefined if no change is seen. */
async function swapped() {
  const manifest = fileURLToPath(new URL('apps/demo/served/app.toml', import.meta.url));
  const before = readFileSync(manifest, 'utf8');
  const { pid } = await where();
  const startedAt = performance.now();
  appendFileSync(manifest, `# ${startedAt}\n`);
  try {
    while ((await where()).pid === pid) {
      if (performance.now() - startedAt > WATCHED_MS) return undefined;
      await pause(5);
    }
    return performance.now() - startedAt;
  } finally {
    writeFileSync(manifest, before);
    await pause(3000);
  }
}
const ms = [];
for (let n = 0; n < 5; n++) {
  const took = await swapped();
  if (took === undefined) break;
  ms.push(took);
}
const what = 'from a saved change to its first answer';
report(ms.length > 0 ? { what, ms: percentiles(ms) } : { what, ms: 'changes are not seen: NODE_ENV is production' });
process.exit(0);
