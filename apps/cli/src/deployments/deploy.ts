// `inference-proxy deploy`: packs a folder, uploads the bundle, follows the build, and prints how to call the app.
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAppName } from '@inference-proxy/contracts';
import type { Command } from 'commander';
import { Failure } from '../service/failures.ts';
import type { Service } from '../service/service.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf } from '../terminal/command.ts';
import { bytes, Progress } from '../terminal/progress.ts';
import { pack, versionName } from './bundle.ts';
import { deploymentKeys } from './manifest-keys.ts';
import { packedFiles } from './packed-files.ts';
import { notActive, short, type Version, Versions } from './versions-api.ts';

interface Options extends CommonOptions {
  readonly app?: string;
  readonly activate: boolean;
}

export function addDeploy(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'deploy [folder]',
    does: 'Deploys the app in a folder, and waits until the new version serves',
    connects: true,
    examples: [
      ['inference-proxy deploy', 'deploy the app in this folder'],
      ['inference-proxy deploy hello --project acme --app greeter', 'choose the folder, the project and the app'],
      ['inference-proxy deploy --no-activate', 'build the version, and keep the active version'],
    ],
  })
    .option('--app <name>', 'name of the app; default: [deployment] name, then the name of the folder')
    .option('--no-activate', 'build the version without activating it')
    .action(async (folder = '.', options: Options) => {
      const { output, service: connect } = toolsOf(settings, options);
      const path = resolve(settings.cwd, folder);
      if (!existsSync(path)) throw new Failure('usage', `The folder ${path} does not exist`);
      const keys = deploymentKeys(path);
      const app = options.app ?? keys.name ?? basename(path);
      if (!isAppName(app))
        throw new Failure('usage', `The app name "${app}" is not valid or is reserved: name the app with --app`);
      const service = connect();
      const files = packedFiles(path, keys);
      if (files.length === 0) throw new Failure('usage', `${path} has no files to deploy`);
      const progress = new Progress(output.json);
      const versions = new Versions(service, app, progress);
      const ended = await rollOut(versions, path, files, options.activate, progress);
      if (ended.state !== 'active' && (options.activate || ended.state === 'failed')) throw notActive(ended);
      const url = service.address(`/${segment(app)}`);
      const shown = ended.state === 'active' && !output.json ? await callsOf(service, app) : [];
      output.result(JSON.stringify({ app, version: ended.version, state: ended.state, url }), () =>
        [`${app} ${short(ended.version)} is ${ended.state}`, ...shown].join('\n'),
      );
    });
}

/** Brings a version to the service, if it is new there, and waits for the end of its roll-out. */
async function rollOut(
  versions: Versions,
  path: string,
  files: readonly string[],
  activate: boolean,
  progress: Progress,
): Promise<Version> {
  const print = ({ text }: { text: string }): void => progress.line(`  ${text}`);
  const version = await versionName(path, files);
  const found = await versions.find(version);
  if (found === undefined || found.state === 'failed') {
    const name = await upload(versions, path, files, version, activate, progress);
    return versions.follow(name, 0, print);
  }
  progress.line(`The service has the version ${short(version)} already`);
  if (found.rolling_out || (activate && found.state !== 'active')) {
    const seen = await versions.logLength(version);
    if (activate) await versions.activate(version);
    return versions.follow(version, seen, print);
  }
  return found;
}

/** Packs and uploads a version. Returns its name. */
async function upload(
  versions: Versions,
  path: string,
  files: readonly string[],
  version: string,
  activate: boolean,
  progress: Progress,
): Promise<string> {
  const archive = await pack(path, files);
  try {
    progress.line(`Packed ${files.length === 1 ? '1 file' : `${files.length} files`}, ${bytes(archive.size)}`);
    return await versions.upload(archive, version, activate);
  } finally {
    archive.remove();
  }
}

interface Described {
  readonly state: string;
  readonly functions: readonly {
    readonly name: string;
    readonly parameters?: readonly { readonly name: string; readonly required: boolean }[];
  }[];
}

/** A gateway learns of the functions a moment after the roll-out. */
const ANNOUNCED_MS = 5_000;
const LOOK_MS = 100;

/** Returns the app as soon as the gateway knows its functions. */
async function announced(service: Service, app: string): Promise<Described> {
  const giveUpAt = Date.now() + ANNOUNCED_MS;
  for (;;) {
    const described = JSON.parse(await service.text('GET', `/apps/${segment(app)}`)) as Described;
    if (described.state === 'ready' || Date.now() > giveUpAt) return described;
    await sleep(LOOK_MS);
  }
}

/** Returns the commands that call the app. */
async function callsOf(service: Service, app: string): Promise<string[]> {
  const url = service.address(`/${segment(app)}`);
  const { functions } = await announced(service, app);
  const [fn] = functions;
  const header = '-H "Authorization: Bearer $INFERENCE_PROXY_TOKEN"';
  if (fn === undefined) return ['', `curl ${url}/ ${header}`];
  const required = (fn.parameters ?? []).filter((one) => one.required).map(({ name }) => [name, '…']);
  const body = JSON.stringify(Object.fromEntries(required));
  return [
    '',
    ...functions.map(({ name }) => `  ${url}/${name}`),
    '',
    `curl -X POST ${url}/${fn.name} ${header} -H "Content-Type: application/json" -d '${body}'`,
    '',
    `inference-proxy call ${app}/${fn.name} '${body}' --project ${service.project}`,
  ];
}
