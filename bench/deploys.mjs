// Contract 7: seconds from `deploy` to the first answer, seconds of a rollback, and calls and streams during 20 deployments and rollbacks.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { create } from 'tar';
import { open, paced, pause, percentiles, report, request, round } from './service.mjs';

const {
  ROUNDS = 5,
  CHANGES = 20,
  RATE = 200,
  STREAMS = 20,
  REQUIREMENT,
  TOKEN,
  PROJECT = 'demo',
  BASE_URL,
} = process.env;
const PROGRAM = join(dirname(fileURLToPath(import.meta.url)), '..', 'apps', 'cli', 'bin', 'inference-proxy.mjs');
const ITEMS = 40;
/** Each run makes versions that the service does not know. */
const mark = `${Date.now()}`;
const folder = await mkdtemp(join(tmpdir(), 'bench-deploys-'));

const source = (text) => `import time
def say():
    return ${JSON.stringify(text)}
def count(n: int):
    for number in range(n):
        time.sleep(0.1)
        yield number
`;

async function written(app, files) {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(folder, app), { recursive: true });
    await writeFile(join(folder, app, name), text);
  }
  return join(folder, app);
}

/** Runs the command line. Throws the output of a command that fails. */
async function cli(...args) {
  const env = {
    ...process.env,
    INFERENCE_PROXY_URL: BASE_URL ?? 'http://127.0.0.1:8080',
    INFERENCE_PROXY_TOKEN: TOKEN,
  };
  const child = spawn(process.execPath, [PROGRAM, ...args, '--project', PROJECT, '--json'], { env });
  const chunks = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(chunk));
  const [code] = await once(child, 'close');
  const text = Buffer.concat(chunks).toString();
  if (code !== 0) throw new Error(`inference-proxy ${args.join(' ')} ended with ${code}: ${text}`);
  return JSON.parse(text);
}

const json = async (method, path, options = {}) => {
  const { status, text } = await request(path, { method, ...options });
  if (status >= 300) throw new Error(`${method} ${path} returned ${status}: ${text}`);
  return JSON.parse(text);
};
const said = async (app) => {
  const { status, text } = await request(`/${app}/say`, { method: 'POST', body: '{}' });
  return status === 200 ? JSON.parse(text).result : undefined;
};

/** Returns the seconds from the start of a command to the first answer of its version. */
async function untilFirstAnswer(app, text, command) {
  const startedAt = performance.now();
  const ended = command();
  ended.catch(() => {});
  while ((await said(app)) !== text) {
    if (performance.now() - startedAt > 120_000) throw new Error(`no answer: ${JSON.stringify(await ended)}`);
    await pause(10);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  await ended;
  return seconds;
}

/** Measures deployments of one app: the first has a new name, the others replace a version. */
async function deployments(name, files) {
  const seconds = [];
  for (let n = 0; n < ROUNDS; n++) {
    const app = `${name}-${mark}`;
    const text = `${mark} ${n}`;
    const path = await written(app, files(text));
    seconds.push(await untilFirstAnswer(app, text, () => cli('deploy', path)));
  }
  report({
    figure: `s from deploy to the first answer, ${name}`,
    first: round(seconds[0]),
    ...percentiles(seconds.slice(1)),
  });
  return `${name}-${mark}`;
}

/** Measures rollbacks of an app that is at rest. The earlier version has no process then. */
async function rollbacks(app) {
  const seconds = [];
  for (let n = 0; n < ROUNDS; n++) {
    const before = await said(app);
    const startedAt = performance.now();
    await cli('rollback', app);
    while ((await said(app)) === before) await pause(10);
    seconds.push((performance.now() - startedAt) / 1000);
  }
  report({ figure: 's from rollback to the first answer, at rest', ...percentiles(seconds) });
}

async function uploaded(app, text) {
  const path = await written(app, { 'main.py': source(text) });
  const chunks = [];
  for await (const chunk of create({ gzip: true, cwd: path }, ['.'])) chunks.push(chunk);
  const more = { 'content-type': 'application/gzip' };
  const { version } = await json('POST', `/apps/${app}/versions`, { body: Buffer.concat(chunks), more });
  return version;
}

/** Waits for the end of a roll-out. */
async function active(app, version) {
  for (;;) {
    const { state, rolling_out: isRollingOut, reason } = await json('GET', `/apps/${app}/versions/${version}`);
    if (!isRollingOut && state !== 'active') throw new Error(`the version is ${state}: ${reason}`);
    if (!isRollingOut) return;
    await pause(50);
  }
}

/** Deploys and rolls back in turns under a constant rate of calls, with streams open all the time. */
async function underLoad() {
  const app = `loaded-${mark}`;
  const versions = [await uploaded(app, `${mark} start`)];
  await active(app, versions[0]);
  while ((await said(app)) === undefined) await pause(10);
  let isOver = false;
  const [calls, streams] = [
    { ok: 0, failed: 0 },
    { whole: 0, cut: 0 },
  ];
  const [failures, latencies] = [[], []];
  const caller = async () => {
    while (!isOver)
      await paced(RATE, RATE, async () => {
        const startedAt = performance.now();
        const { status, text } = await request(`/${app}/say`, { method: 'POST', body: '{}' });
        latencies.push(performance.now() - startedAt);
        if (status === 200) calls.ok++;
        else {
          calls.failed++;
          failures.push(text);
        }
      });
  };
  const reader = async () => {
    while (!isOver) {
      const body = JSON.stringify({ n: ITEMS });
      const more = { accept: 'text/event-stream' };
      const answer = await open(`/${app}/count`, { method: 'POST', body, more, own: true });
      const chunks = [];
      // A cut connection throws; the number of items shows it.
      await (async () => {
        for await (const chunk of answer) chunks.push(chunk);
      })().catch((error) => failures.push(String(error)));
      const items =
        Buffer.concat(chunks)
          .toString()
          .match(/^data: \d+$/gm)?.length ?? 0;
      if (items === ITEMS) streams.whole++;
      else streams.cut++;
    }
  };
  const load = [caller(), ...Array.from({ length: Number(STREAMS) }, reader)];
  const seconds = { deploy: [], rollback: [] };
  const startedAt = performance.now();
  for (let n = 0; n < CHANGES; n++) {
    const changedAt = performance.now();
    const kind = n % 2 === 0 ? 'deploy' : 'rollback';
    if (kind === 'deploy') versions.push(await uploaded(app, `${mark} ${n}`));
    else await json('POST', `/apps/${app}/versions/${versions.at(-2)}/activate`);
    await active(app, versions.at(kind === 'deploy' ? -1 : -2));
    seconds[kind].push((performance.now() - changedAt) / 1000);
    await pause(500);
  }
  isOver = true;
  await Promise.all(load);
  const lasted = (performance.now() - startedAt) / 1000;
  report({
    figure: 'changes under load',
    changes: Number(CHANGES),
    perSecond: round(latencies.length / lasted),
    calls,
    streams,
  });
  report({ figure: 'ms of a call under load', ...percentiles(latencies) });
  report({ figure: 's of a deployment under load', ...percentiles(seconds.deploy) });
  report({ figure: 's of a rollback under load', ...percentiles(seconds.rollback) });
  if (calls.failed + streams.cut > 0) throw new Error(`calls or streams were lost: ${failures.slice(0, 5).join('\n')}`);
}

try {
  const files = (text) => ({ 'main.py': source(text) });
  if (REQUIREMENT !== undefined)
    await deployments('packages', (text) => ({ ...files(text), 'requirements.txt': `${REQUIREMENT}\n` }));
  await rollbacks(await deployments('one-file', files));
  await underLoad();
} finally {
  await rm(folder, { recursive: true });
}
