// Contract 6: tools read the documents of the service and of an app on a running stack.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { dataFolder, projectRoot } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

const run = promisify(execFile);
const PROJECT = 'openapi';
const LIMIT_MS = 120_000;

let stack: SharedStack;
let folder: string;
beforeAll(async () => {
  stack = await joinSharedStack(PROJECT, ['documented']);
  folder = await mkdtemp(join(dataFolder(), 'openapi-'));
  await writeFile(join(folder, 'service.json'), (await get('/openapi.json')).text);
  await writeFile(join(folder, 'app.json'), (await get(`/openapi/${PROJECT}/documented.json`)).text);
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await stack.leave();
});

const get = (path: string) => stack.caller.request(path, { method: 'GET' });

/** Runs a program of Node in the folder of the documents. Rejects with its output if it fails. */
async function node(...args: string[]): Promise<string> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', CI: 'true', NO_COLOR: '1' };
  const { stdout } = await run(process.execPath, args, { cwd: folder, env, timeout: LIMIT_MS }).catch(
    (error: Error & { stdout?: string; stderr?: string }) => {
      throw new Error(`${error.stdout ?? ''}${error.stderr ?? ''}${error.message}`);
    },
  );
  return stdout;
}

const inPackage = (name: string, file: string): string =>
  join(fileURLToPath(import.meta.resolve(`${name}/package.json`)), '..', file);

test.each(['service', 'app'])('@redocly/cli finds no error in the document of the %s', async (name) => {
  const text = await node(inPackage('@redocly/cli', 'bin/cli.js'), 'lint', `${name}.json`, '--format=json');
  const { totals } = JSON.parse(text) as { totals: { errors: number } };
  expect(totals.errors).toBe(0);
});

const USES = `
import { createClient } from './client/client/index.ts';
import { area, count, resize, untyped } from './client/sdk.gen.ts';

const [baseUrl, token] = process.argv.slice(2) as [string, string];
const client = createClient({ baseUrl, auth: token });

const resized = await resize({ client, body: { image: 'a.png', width: 320, mode: 'fill' } });
const width: { [key: string]: number } | undefined =
  resized.data && 'result' in resized.data ? resized.data.result : undefined;
const ofBox = await area({ client, body: { box: { width: 2, height: 3, inner: null }, unit: 'm' } });
const size: number | undefined = ofBox.data && 'result' in ofBox.data ? ofBox.data.result : undefined;
const counted = await count({ client, body: { upto: 2 } });
const greeted = await untyped({ client, body: { name: 'Ada' } });
// @ts-expect-error The document says that \`width\` is a number.
const wrong = await resize({ client, body: { image: 'a.png', width: 'wide' } });
const { stream } = await client.sse.post<number>({
  url: '/v4/${PROJECT}/documented/count',
  headers: { authorization: \`Bearer \${token}\`, 'content-type': 'application/json', accept: 'text/event-stream' },
  body: { upto: 2 },
});
const items: unknown[] = [];
for await (const item of stream) items.push(item);
console.log(
  JSON.stringify({
    width,
    size,
    counted: counted.data,
    greeted: greeted.data,
    wrong: [wrong.response?.status, wrong.error && 'error' in wrong.error ? wrong.error.error.details : undefined],
    items,
  }),
);
`;

test('a client that @hey-api/openapi-ts generates from the document of an app compiles and calls', async () => {
  const hook = join(projectRoot(), 'scripts', 'older-typescript.mjs');
  await node(
    '--import',
    pathToFileURL(hook).href,
    inPackage('@hey-api/openapi-ts', 'dist/run.mjs'),
    '-i',
    'app.json',
    '-o',
    'client',
  );
  await writeFile(join(folder, 'uses.ts'), USES);
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  await symlink(join(projectRoot(), 'node_modules'), join(folder, 'node_modules'));
  const options = {
    target: 'es2024',
    module: 'preserve',
    moduleResolution: 'bundler',
    lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    noEmit: true,
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['uses.ts'] }));
  await node(inPackage('typescript', 'bin/tsc'), '-p', '.');
  const bundled = ['uses.ts', '--bundle', '--outfile=uses.mjs', '--platform=node', '--format=esm', '--target=node24'];
  await run(join(projectRoot(), 'node_modules', '.bin', 'esbuild'), bundled, { cwd: folder, timeout: LIMIT_MS });
  const text = await node('uses.mjs', `http://127.0.0.1:${stack.port}`, stack.caller.bearer.replace('Bearer ', ''));
  expect(JSON.parse(text)).toMatchObject({
    width: { width: 320, mode: 4 },
    size: 6,
    counted: { status: 'succeeded', result: [0, 1] },
    greeted: { result: { greeting: 'Hello, Ada!' } },
    wrong: [422, [{ loc: ['body', 'width'], type: 'int_type' }]],
    items: [0, 1],
  });
});
