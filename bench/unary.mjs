// Contract 1: unary calls at 1, 32 and 128 in flight, alternating with a bare `node:http` server: calls/s, latency, and CPU per call by process.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { call, cpuSeconds, median, percentiles, report, round } from './service.mjs';

const { ROUNDS = 5, SECONDS = 3, WARM_CALLS = 30_000, PIDS = '.data/pids.json' } = process.env;
const WIDTHS = [1, 32, 128];
const PARAMS = { i: 1 };

/** Runs in the child: answers like a service without queue, store and function. */
function serveBare() {
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const result = JSON.parse(Buffer.concat(chunks).toString());
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ status: 'succeeded', result }));
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
}

/** Returns the process ids of each part. Functions run in descendants of the worker. */
function parts() {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [[Number(pid), Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[1])]];
      } catch {
        return []; // The process has ended meanwhile.
      }
    });
  const below = (pid) => parents.filter(([, parent]) => parent === pid).flatMap(([child]) => [child, ...below(child)]);
  const found = { gateway: [], redis: [], worker: [], functions: [], dispatcher: [] };
  for (const [name, pid] of Object.entries(JSON.parse(readFileSync(PIDS, 'utf8')))) {
    const part = name.replace(/-\d+$/, '');
    found[part]?.push(pid);
    if (part === 'worker') found.functions.push(...below(pid));
  }
  return found;
}

/** Calls for some seconds, `width` calls at a time. */
async function measured(width, pids, send) {
  const before = Object.entries(pids).map(([name, ids]) => [
    name,
    ids,
    ids.reduce((sum, id) => sum + cpuSeconds(id), 0),
  ]);
  const latencies = [];
  const startedAt = performance.now();
  const endAt = startedAt + SECONDS * 1000;
  const lane = async () => {
    while (performance.now() < endAt) {
      const at = performance.now();
      await send();
      latencies.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  const seconds = (performance.now() - startedAt) / 1000;
  const cpu = before.map(([name, ids, used]) => [
    name,
    ((ids.reduce((sum, id) => sum + cpuSeconds(id), 0) - used) * 1e6) / latencies.length,
  ]);
  return { perSecond: latencies.length / seconds, p50: percentiles(latencies).p50, cpu: Object.fromEntries(cpu) };
}

/** Calls of the same values with and without annotations. Without schemas of its app, a typed function costs what an untyped one costs. */
const SMALL = { image: 'https://example.com/a.png', width: 320, mode: 'fill' };
const LARGE = {
  orders: Array.from({ length: 20 }, (_, count) => ({
    id: '01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17',
    when: '2026-11-22T20:30:00Z',
    count,
  })),
};
const TYPED_PAIRS = [
  ['small', 'untyped_small', 'typed_small', SMALL],
  ['large', 'untyped_large', 'typed_large', LARGE],
];

/** Compares pairs of functions at 32 calls in flight, in turns. */
async function compareTypes() {
  const pids = parts();
  for (const [name, ...pair] of TYPED_PAIRS) {
    const params = pair.pop();
    const figures = pair.map(() => []);
    const send = async (fn) => {
      const { status, text } = await call(fn, params);
      if (status !== 200) throw new Error(`the service answered ${status}: ${text}`);
    };
    for (let warm = 0; warm < WARM_CALLS / 10; warm++) await Promise.all(pair.map(send));
    for (let round = 0; round < ROUNDS; round++)
      for (const which of round % 2 === 0 ? [0, 1] : [1, 0])
        figures[which].push(await measured(32, pids, () => send(pair[which])));
    const [untyped, typed] = figures;
    const ofGateway = (list) => median(list.map(({ cpu }) => cpu.gateway));
    report({
      typed: name,
      bytes: JSON.stringify(params).length,
      callsPerSecond: figures.map((list) => round(median(list.map(({ perSecond }) => perSecond)))),
      gatewayMicrosPerCall: [round(ofGateway(untyped)), round(ofGateway(typed))],
      medianOfPairedDifferences: round(median(untyped.map(({ cpu }, at) => typed[at].cpu.gateway - cpu.gateway))),
    });
  }
}

async function compare() {
  const child = fork(fileURLToPath(import.meta.url), ['bare']);
  const [port] = await once(child, 'message');
  const agent = new http.Agent({ keepAlive: true, maxSockets: 512 });
  const body = JSON.stringify(PARAMS);
  const ways = {
    service: async () => {
      const { status, text } = await call('echo', PARAMS);
      if (status !== 200) throw new Error(`the service answered ${status}: ${text}`);
    },
    bare: async () => {
      const sent = http.request({
        host: '127.0.0.1',
        port,
        agent,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      });
      sent.end(body);
      const [answer] = await once(sent, 'response');
      answer.resume();
      await once(answer, 'end');
    },
  };
  const pids = { service: parts(), bare: { bare: [child.pid] } };
  let warm = 0;
  const warmUp = async (send) => {
    while (warm++ < WARM_CALLS) await send();
  };
  await Promise.all(Array.from({ length: 32 }, () => warmUp(ways.service)));
  for (const width of WIDTHS) {
    const figures = { service: [], bare: [] };
    for (let round = 0; round < ROUNDS; round++)
      for (const way of round % 2 === 0 ? ['service', 'bare'] : ['bare', 'service'])
        figures[way].push(await measured(width, pids[way], ways[way]));
    const { service, bare } = figures;
    const cpu = Object.fromEntries(
      Object.keys(service[0].cpu).map((part) => [part, round(median(service.map((figure) => figure.cpu[part])))]),
    );
    report({
      unary: width,
      callsPerSecond: round(median(service.map(({ perSecond }) => perSecond))),
      p50Ms: median(service.map(({ p50 }) => p50)),
      cpuMicrosPerCall: { ...cpu, all: round(Object.values(cpu).reduce((sum, part) => sum + part, 0)) },
      bare: {
        callsPerSecond: round(median(bare.map(({ perSecond }) => perSecond))),
        cpuMicrosPerCall: round(median(bare.map((figure) => figure.cpu.bare))),
      },
      ratioOfPairs: percentiles(service.map(({ perSecond }, at) => perSecond / bare[at].perSecond)).p50,
    });
  }
  child.kill();
  await compareTypes();
}

if (process.argv[2] === 'bare') serveBare();
else {
  await compare();
  process.exit(0);
}
