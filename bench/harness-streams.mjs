// PROTOCOL.md, "Pace": items/s and CPU per item of a harness alone. A consumer reads the frames and grants credit at once.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { cpuSeconds, median, privateBytes, report, round } from './figures.mjs';

const { ROUNDS = 5, STREAMS = '1,8,64', ENGINE = process.execPath, ENGINE_OPTIONS = '' } = process.env;
/** Items of a measurement, and of each stream. */
const { ITEMS = 300_000, LENGTHS = '1000,100000' } = process.env;
const APP = fileURLToPath(new URL('apps/demo', import.meta.url));
const harness = (path) => fileURLToPath(new URL(`../apps/worker/harness/${path}`, import.meta.url));
const LANGUAGES = {
  python: {
    command: ['python3', '-u', harness('python')],
    init: { app: `${APP}/bench`, entry: 'main.py' },
  },
  node: {
    command: [ENGINE, ...ENGINE_OPTIONS.split(' ').filter(Boolean), harness('node/main.mjs')],
    init: { app: `${APP}/benchjs`, entry: 'main.mjs' },
  },
};

/** A harness with its app, as the worker starts it. */
class Harness {
  #child;
  #rest = Buffer.alloc(0);
  /** The runs in flight, by id. */
  #runs = new Map();
  #ready = Promise.withResolvers();
  #next = 0;
  frames = 0;

  constructor({ command: [file, ...args], init }) {
    const startedAt = performance.now();
    this.#child = spawn(file, args, { cwd: init.app, stdio: ['ignore', 'inherit', 'inherit', 'pipe'], detached: true });
    this.#child.stdio[3].on('data', (chunk) => this.#read(chunk));
    const limits = { max_item_bytes: 1e6, max_output_bytes: 1e7, max_log_bytes: 1e5, debug: false };
    this.#send({ t: 'init', proto: 1, ...init, concurrency: 100, ...limits });
    this.ready = this.#ready.promise.then(() => performance.now() - startedAt);
  }

  get pid() {
    return this.#child.pid;
  }

  /** Calls a stream. Resolves at its end. */
  stream(f, params) {
    const r = `01a1fc42-ca24-7b52-9d40-${String(++this.#next).padStart(12, '0')}`;
    const blob = JSON.stringify(params);
    const ended = Promise.withResolvers();
    this.#runs.set(r, { taken: 0, granted: 0, ended });
    this.#send({ t: 'run', r, f, paced: true, b: blob.length }, blob);
    return ended.promise;
  }

  async end() {
    this.#send({ t: 'drain' });
    await once(this.#child, 'exit');
  }

  #send(header, blob = '') {
    this.#child.stdio[3].write(`${JSON.stringify(header)}\n${blob}`);
  }

  #read(chunk) {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const end = data.indexOf(10);
      if (end === -1) break;
      const header = JSON.parse(data.toString('latin1', 0, end));
      const next = end + 1 + (header.b ?? 0);
      if (data.length < next) break;
      this.#take(header);
      data = data.subarray(next);
    }
    this.#rest = data;
    let credits = '';
    for (const [r, run] of this.#runs) {
      if (run.taken === run.granted) continue;
      credits += `{"t":"credit","r":"${r}","n":${run.taken}}\n`;
      run.granted = run.taken;
    }
    if (credits !== '') this.#child.stdio[3].write(credits);
  }

  #take(header) {
    if (header.t === 'ready') this.#ready.resolve();
    const run = this.#runs.get(header.r);
    if (run === undefined) return;
    if (header.t === undefined) {
      run.taken += header.n;
      this.frames++;
    } else if (header.t === 'done') {
      this.#runs.delete(header.r);
      run.ended.resolve();
    } else if (header.t === 'error') run.ended.reject(new Error(JSON.stringify(header)));
  }
}

/** Calls streams until `all` items have arrived, `streams` at a time. */
async function measured(harness, streams, length, all) {
  const before = { cpu: cpuSeconds(harness.pid), frames: harness.frames };
  const startedAt = performance.now();
  let left = Math.ceil(all / length);
  const lane = async () => {
    while (left-- > 0) await harness.stream('items', { n: length });
  };
  const count = left * length;
  await Promise.all(Array.from({ length: streams }, lane));
  const perSecond = (count * 1000) / (performance.now() - startedAt);
  const cpuMicros = ((cpuSeconds(harness.pid) - before.cpu) * 1e6) / count;
  return { perSecond, cpuMicros, perFrame: count / (harness.frames - before.frames) };
}

const names = (process.env.HARNESSES ?? 'python,node').split(',');
const started = Object.fromEntries(names.map((name) => [name, new Harness(LANGUAGES[name])]));
for (const name of names) {
  const readyMs = await started[name].ready;
  report({ harness: name, readyMs: round(readyMs), idleKb: privateBytes(started[name].pid) / 1024 });
}
for (const name of names) await measured(started[name], 8, 1000, Number(ITEMS));
for (const length of LENGTHS.split(',').map(Number))
  for (const streams of STREAMS.split(',').map(Number)) {
    const figures = Object.fromEntries(names.map((name) => [name, []]));
    const all = Math.max(Number(ITEMS), length * streams);
    for (let round = 0; round < ROUNDS; round++)
      for (const name of round % 2 === 0 ? names : names.toReversed())
        figures[name].push(await measured(started[name], streams, length, all));
    for (const name of names) {
      const of = (figure) => median(figures[name].map((one) => one[figure]));
      const [itemsPerSecond, itemsPerFrame] = [Math.round(of('perSecond')), round(of('perFrame'))];
      report({
        harness: name,
        length,
        streams,
        itemsPerSecond,
        cpuMicrosPerItem: round(of('cpuMicros')),
        itemsPerFrame,
      });
    }
  }
await Promise.all(Object.values(started).map((one) => one.end()));
