// Contract 6: Schemathesis calls a running stack from its documents. It finds no 500, and no answer outside the document.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dataFolder } from '@inference-proxy/supervisor';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Deployer } from '../client/deployer.ts';
import { obtainSchemathesis } from '../openapi/schemathesis.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

const run = promisify(execFile);
const PROJECT = 'schemathesis';
const LIMIT_MS = 400_000;
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];

const schemathesis = await obtainSchemathesis();
const missing = 'missing' in schemathesis ? schemathesis.missing : undefined;
if (missing !== undefined) console.warn(`skipped: ${missing}`);
const testWithTool = missing === undefined ? test : test.skip;

/** Schemathesis has no serializer for the archives of apps. Every second archive is an app. */
const HOOKS = `import io, tarfile
import schemathesis


@schemathesis.serializer("application/gzip")
def archive(ctx, value):
    given = value if isinstance(value, bytes) else str(value).encode()
    if len(given) % 2:
        return given
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        text = b"def say():\\n    return 1\\n"
        entry = tarfile.TarInfo("main.py")
        entry.size = len(text)
        files.addfile(entry, io.BytesIO(text))
    return packed.getvalue()
`;
/** An app that the calls may deploy, activate and remove. */
const DEPLOYED = 'thrown';

let stack: SharedStack;
let deployer: Deployer;
let version: string;
let folder: string;
beforeAll(async () => {
  stack = await joinSharedStack(PROJECT, ['documented']);
  deployer = new Deployer(stack.port, stack.jwtSecret, PROJECT);
  ({ version } = await deployer.deploy(DEPLOYED, { 'main.py': 'def say():\n    return 2\n' }));
  await deployer.settled(DEPLOYED, version);
  folder = await mkdtemp(join(dataFolder(), 'documents-'));
  await writeFile(join(folder, 'hooks.py'), HOOKS);
});
afterAll(async () => {
  // Schemathesis may have removed the app.
  await deployer.request('DELETE', `/apps/${DEPLOYED}`);
  await rm(folder, { recursive: true, force: true });
  await stack.leave();
});

interface Parameter {
  readonly name: string;
  readonly in: string;
  schema: object;
}

/**
 * Gives the path parameters of a document the names of real things. Otherwise almost every answer would be 404.
 *
 * @param app the app that the calls reach
 */
async function withRealNames(text: string, app: string): Promise<string> {
  const { text: answer } = await stack.caller.call('documented/count', { upto: 2 });
  const names: Record<string, string> = {
    project: PROJECT,
    app,
    function: 'untyped',
    version,
    run: (JSON.parse(answer) as { run_id: string }).run_id,
    model: 'untyped',
  };
  const document = JSON.parse(text) as { components: { parameters: Record<string, Parameter> } };
  for (const parameter of Object.values(document.components.parameters)) {
    const name = parameter.in === 'path' ? names[parameter.name] : undefined;
    if (name !== undefined) parameter.schema = { type: 'string', enum: [name] };
  }
  return JSON.stringify(document);
}

testWithTool.each([
  ['an app', `/openapi/${PROJECT}/documented.json`, 'documented', '15', []],
  ['the service', '/openapi.json', 'documented', '8', []],
  ['the service, about an app that it may change,', '/openapi.json', DEPLOYED, '8', ['--include-tag=apps']],
] as const)(
  'the answers to calls from the document of %s are as documented',
  async (_, path, app, examples, more) => {
    const { text } = await stack.caller.request(path, { method: 'GET' });
    const file = join(folder, 'document.json');
    await writeFile(file, await withRealNames(text, app));
    const [program, args] = 'command' in schemathesis ? schemathesis.command : ['', []];
    const options = ['--phases=examples,coverage,fuzzing', `--max-examples=${examples}`, '--seed=1', '--no-color'];
    const report = await run(
      program,
      [...args, 'run', file, `--url=http://127.0.0.1:${stack.port}`, `--checks=${CHECKS.join(',')}`, ...options].concat(
        '--header',
        `Authorization: ${app === DEPLOYED ? deployer.caller.bearer : stack.caller.bearer}`,
        ...more,
      ),
      {
        cwd: folder,
        env: { ...process.env, SCHEMATHESIS_HOOKS: 'hooks' },
        timeout: LIMIT_MS,
        maxBuffer: 64 * 1024 * 1024,
      },
    ).then(
      ({ stdout }) => ({ failed: false, text: stdout }),
      ({ stdout, message }: Error & { stdout?: string }) => ({ failed: true, text: stdout ?? message }),
    );
    expect(report).toEqual({ failed: false, text: expect.stringMatching(/[1-9]\d* generated, [1-9]\d* passed/) });
  },
  LIMIT_MS,
);
