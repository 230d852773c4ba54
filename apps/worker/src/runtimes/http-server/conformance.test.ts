// Contract 1, "Custom runtimes": web servers against the conformance suite of all runtimes: FastAPI under uvicorn, and plain Node.
import { type FastApi, obtainFastApi } from '@inference-proxy/test/fastapi';
import { conformance } from '../conformance.ts';
import { deed, RecordedLog, serverRuntime } from '../testing/servers.ts';

const fastApi: FastApi = await obtainFastApi();
const log = new RecordedLog();
/** Longer than a test may take, so no run reaches this limit. */
const NEVER_MS = 600_000;
/** Runs whose clean-up was logged. The line comes after the run's end, in the worker's own log. */
let cleanedUp = 0;
const common = {
  call: deed,
  broken: 'upstream_reset',
  cleanedUp: () => log.logged('cleaned up', ++cleanedUp),
};

conformance('FastAPI under uvicorn', {
  ...common,
  make: (concurrency, limits) =>
    serverRuntime(log, {
      folder: 'fastapi',
      entrypoint: [fastApi.python, '-m', 'uvicorn', 'main:app', '--port', '{port}'],
      env: fastApi.env,
      readycheck: '/health',
      concurrency,
      timeoutMs: limits?.timeoutMs ?? NEVER_MS,
    }),
});

conformance('a plain Node server', {
  ...common,
  make: (concurrency, limits) =>
    serverRuntime(log, { folder: 'node', concurrency, timeoutMs: limits?.timeoutMs ?? NEVER_MS }),
});
