// Contract 7: `npm run check` on folders with web servers, and on ports that are taken.
import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { join } from 'node:path';
import { obtainFastApi } from '@inference-proxy/test/fastapi';
import { expect, test } from '@jest/globals';
import { freePort } from '../runtimes/http-server/ports.ts';
import { checkApp } from './check-app.ts';
import { report } from './report.ts';
import { AppFolders } from './testing/app-folders.ts';

const folders = new AppFolders();

const SERVER = [
  'import { createServer } from "node:http";',
  'console.log("warming up");',
  'createServer((_, response) => response.end()).listen(process.env.PORT ?? 0);',
].join('\n');

test('an app that is a web server is reported as a server', async () => {
  const checked = await folders.check({
    'app.toml': '[runtime.custom]\nentrypoint = "node server.mjs"\nreadycheck_endpoint = "/"',
    'server.mjs': SERVER,
  });
  expect(checked).toMatchObject({ problems: [], notes: [], functions: [], server: 'node server.mjs' });
  expect(report(checked)).toMatch(
    /^starts in \d+\.\d s\nserves every path of the app with node server\.mjs\nIt can be deployed\.\n$/,
  );
  expect(folders.printed).toContain('warming up');
});

test('a hosted folder with a FastAPI server runs without a change, and a note names the costs of its port', async () => {
  const { python, env } = await obtainFastApi();
  const port = await freePort();
  const { problems, notes, startMs } = await folders.check({
    'cerebrium.toml': [
      '[cerebrium.deployment]\nname = "mine"\npython_version = "3.11"',
      `[cerebrium.runtime.custom]\nport = ${port}\nhealthcheck_endpoint = "/health"\nreadycheck_endpoint = "/ready"`,
      `entrypoint = ["${python}", "-m", "uvicorn", "main:app", "--host", "0.0.0.0", "--port", "${port}"]`,
      '[cerebrium.scaling]\nmin_replicas = 1\nreplica_concurrency = 10\nresponse_grace_period = 120',
      `[env]\n${Object.entries(env).map(([name, value]) => `${name} = "${value}"`)}`,
    ].join('\n'),
    'main.py': [
      'from fastapi import FastAPI\napp = FastAPI()',
      '@app.get("/health")\ndef health(): return "OK"',
      '@app.get("/ready")\ndef ready(): return "OK"',
    ].join('\n'),
  });
  expect(problems).toEqual([]);
  expect(startMs).toEqual(expect.any(Number));
  expect(notes).toEqual([
    'deployment.name has no effect here',
    'deployment.python_version has no effect here',
    expect.stringMatching(
      `^a server with the fixed port ${port} has one replica .* \\{port\\} in its place in entrypoint`,
    ),
  ]);
});

test.each([
  ['a missing program', 'entrypoint = "no-such-server"', /^there is no program no-such-server on the PATH$/],
  [
    'a server that exits',
    'entrypoint = ["python3", "-c", "import sys; sys.exit(\'no weights\')"]',
    /code 1: no weights$/,
  ],
  [
    'a server that never listens',
    'entrypoint = "sleep 60"\n[scaling]\nstartup_timeout = 1',
    /^it does not start: NotReady: .* within 1 s: it takes no/,
  ],
  [
    'a server with a url that does not answer',
    'url = "http://127.0.0.1:1"\n[scaling]\nstartup_timeout = 2',
    /^it does not start: .* ECONNREFUSED/,
  ],
  [
    'both runtimes together',
    'entrypoint = "a"\n[runtime.python]',
    /^app\.toml: \[runtime\.custom\] and \[runtime\.python\]/,
  ],
])('for a web server, %s is a problem', async (_, section, problem) => {
  const { problems } = await folders.check({ 'app.toml': `[runtime.custom]\n${section}` });
  expect(problems).toEqual([expect.stringMatching(problem)]);
});

test('missing modules of a server in Python are reported', async () => {
  const { problems } = await folders.check({
    'app.toml': '[runtime.custom]\nentrypoint = ["./serve", "--port", "{port}"]',
    serve: '#!/usr/bin/env python3\nimport main\n',
    'main.py': 'import no_such_f\n',
  });
  expect(problems).toEqual([expect.stringMatching(/^main\.py:1 imports no_such_f/)]);
});

const PORTED = SERVER.replace('process.env.PORT ?? 0', 'process.argv.at(-1)');

/** Starts a process in a folder that listens on a port. */
async function listener(cwd: string, port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [join(cwd, 'server.mjs'), String(port)], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  while ((await connected(port)) === false) await new Promise((resolve) => setTimeout(resolve, 10));
  return child;
}

const connected = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => resolve(socket.destroy() && true));
    socket.once('error', () => resolve(false));
  });

test('a port that the running app itself holds is not a problem; a port of another app is a problem', async () => {
  const port = await freePort();
  const app = {
    'app.toml': `[runtime.custom]\nport = ${port}\nentrypoint = ["node", "server.mjs", "${port}"]`,
    'server.mjs': PORTED,
  };
  const [running, stranger] = [await folders.make(app), await folders.make(app)];
  const child = await listener(running, port);
  try {
    const own = await checkApp(running, folders.options);
    expect(own.problems).toEqual([]);
    expect(own.notes).toContain(`port ${port} is held by this running app: the check did not start it again`);
    expect(report(own)).toContain('It can be deployed.');
    const { problems } = await checkApp(stranger, folders.options);
    expect(problems).toEqual([expect.stringContaining(`port ${port} is taken by another server`)]);
  } finally {
    child.kill('SIGKILL');
  }
});

test('a taken port that entrypoint contains is replaced, and the report has the new port', async () => {
  const port = await freePort();
  const path = await folders.make({
    'app.toml': `[runtime.custom]\nport = ${port}\nentrypoint = "node server.mjs --port ${port}"`,
    'server.mjs': PORTED,
  });
  const child = await listener(path, port);
  try {
    const checked = await checkApp(path, folders.options);
    expect(checked.problems).toEqual([]);
    expect(checked.notes).toContainEqual(
      expect.stringMatching(
        `^port ${port} is taken on this machine: the server starts on port \\d+, which replaces ${port}`,
      ),
    );
    expect(checked.startMs).toEqual(expect.any(Number));
  } finally {
    child.kill('SIGKILL');
  }
});
