// `inference-proxy dev`: the stack of `npm start` for one app's folder. The worker reloads changed code.
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAppName, isProjectName, PROJECT_NAME_FORM } from '@inference-proxy/contracts';
import type { Ready } from '@inference-proxy/supervisor';
import type { Command } from 'commander';
import { Failure } from '../service/failures.ts';
import { Service } from '../service/service.ts';
import type { Settings } from '../settings.ts';
import { defineCommand } from '../terminal/command.ts';
import { repository } from './programs.ts';

interface Options {
  readonly json?: boolean;
  readonly project: string;
  readonly app?: string;
}

const TOKEN_TTL_S = 86_400;
/** The message of the stack waits this long for the app. A large model may take longer to load. */
const APP_MS = 30_000;
const LOOK_MS = 100;

/** An app as `GET /v4/{project}` reports it. */
interface App {
  readonly app: string;
  readonly state: string;
  readonly functions: readonly { readonly name: string }[];
  readonly error?: { readonly message: string };
}

export function addDev(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'dev [folder]',
    does: 'Runs the service on this machine with the app in a folder, and reloads changed code',
    examples: [
      ['inference-proxy dev', 'serve the app in this folder, until Ctrl-C'],
      ['PORT=9000 inference-proxy dev hello --project acme', 'choose the port, the folder and the project'],
    ],
  })
    .option('--project <name>', 'project in the paths of calls', 'demo')
    .option('--app <name>', 'app in the paths of calls; default: the name of the folder')
    .action(async (folder = '.', options: Options) => {
      repository();
      const path = resolve(settings.cwd, folder);
      const { project, app = basename(path) } = options;
      if (!existsSync(path)) throw new Failure('usage', `The folder ${path} does not exist`);
      if (!isProjectName(project))
        throw new Failure('usage', `The project name "${project}" must have ${PROJECT_NAME_FORM}`);
      if (!isAppName(app))
        throw new Failure('usage', `The app name "${app}" is not valid or is reserved: name the app with --app`);
      // The import takes half a second, so no other command imports the supervisor.
      const { runInTerminal, signToken } = await import('@inference-proxy/supervisor');
      const welcome = async ({ url, jwtSecret, tookMs }: Ready): Promise<string> => {
        const token = signToken(jwtSecret, { project, ttlS: TOKEN_TTL_S });
        const found = await settledApp(new Service({ url, token, project }), app);
        if (options.json)
          process.stdout.write(`${JSON.stringify({ url, token, project, app, folder: path, state: found?.state })}\n`);
        return message({ url, token, project, app, path, tookMs, found });
      };
      runInTerminal({
        args: [],
        environment: { ...settings.environment, DEPLOYMENTS_DIR: deploymentOf(path, project, app) },
        welcome,
        // With `--json`, standard output has the one JSON object.
        ...(options.json && { sink: process.stderr }),
      });
      // The process ends with the stack.
      await new Promise(() => {});
    });
}

/** Makes a deployments folder with a link to the app's folder. Returns its path. It is removed when this process ends. */
function deploymentOf(path: string, project: string, app: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'inference-proxy-dev-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, project));
  symlinkSync(path, join(folder, project, app));
  return folder;
}

/** Returns the app after its start, or undefined if the start takes longer than the message waits. */
async function settledApp(service: Service, app: string): Promise<App | undefined> {
  const giveUpAt = Date.now() + APP_MS;
  while (Date.now() < giveUpAt) {
    const text = await service.text('GET', '').catch(() => '{"apps": []}');
    const found = (JSON.parse(text) as { apps: App[] }).apps.find((one) => one.app === app);
    if (found !== undefined && found.state !== 'starting') return found;
    await sleep(LOOK_MS);
  }
  return undefined;
}

interface Shown {
  readonly url: string;
  readonly token: string;
  readonly project: string;
  readonly app: string;
  readonly path: string;
  readonly tookMs: number;
  readonly found: App | undefined;
}

function message({ url, token, project, app, path, tookMs, found }: Shown): string {
  const fn = found?.functions[0]?.name;
  const state = found?.error === undefined ? (found?.state ?? 'starting') : `${found.state}: ${found.error.message}`;
  return `
Ready in ${(tookMs / 1000).toFixed(1)} s.  Ctrl-C stops everything; saved files are reloaded

  App     ${project}/${app}, ${state}
  Folder  ${path}
  URL     ${url}
  Token   ${token}
${found?.functions.map(({ name }) => `\n  ${url}/v4/${project}/${app}/${name}`).join('') ?? ''}
${
  fn === undefined
    ? ''
    : `
Call the first function in another terminal:

curl -X POST "${url}/v4/${project}/${app}/${fn}" -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '{}'
`
}`;
}
