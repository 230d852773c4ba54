// `inference-proxy versions`: the versions of an app, and their build logs.
import type { Command } from 'commander';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf } from '../terminal/command.ts';
import { fields, table } from '../terminal/output.ts';
import { bytes, Progress } from '../terminal/progress.ts';
import { short, type Version, Versions } from './versions-api.ts';

interface Listed extends Version {
  readonly author?: string;
  readonly deployed_at: string;
  readonly size: number;
}

export function addVersions(program: Command, settings: Settings): void {
  const versions = program.command('versions').description('Lists and reads the versions of an app');
  addList(versions, settings);
  addShow(versions, settings);
  addLog(versions, settings);
}

function addList(versions: Command, settings: Settings): void {
  defineCommand(versions, {
    form: 'list <app>',
    does: 'Lists the latest versions of an app, and prints the app with --json',
    connects: true,
    examples: [['inference-proxy versions list hello', 'print the latest versions, newest first']],
  }).action(async (app: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('GET', `/apps/${segment(app)}`);
    output.result(text, () =>
      table(
        ['VERSION', 'STATE', 'DEPLOYED', 'AUTHOR', 'SIZE', 'REASON'],
        (JSON.parse(text) as { versions: Listed[] }).versions.map((one) => [
          short(one.version),
          one.rolling_out && one.state !== 'building' ? `${one.state}, rolling out` : one.state,
          one.deployed_at,
          one.author ?? '',
          bytes(one.size),
          one.reason ?? '',
        ]),
      ),
    );
  });
}

function addShow(versions: Command, settings: Settings): void {
  defineCommand(versions, {
    form: 'show <app> <version>',
    does: 'Prints the state of a version and its activations',
    connects: true,
    examples: [['inference-proxy versions show hello 9f86d081', 'print one version']],
  }).action(async (app: string, version: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('GET', `/apps/${segment(app)}/versions/${segment(version)}`);
    output.result(text, () => fields(text));
  });
}

function addLog(versions: Command, settings: Settings): void {
  defineCommand(versions, {
    form: 'log <app> <version>',
    does: 'Prints the build and start log of a version',
    connects: true,
    examples: [
      ['inference-proxy versions log hello 9f86d081', 'print the lines so far'],
      ['inference-proxy versions log hello 9f86d081 --follow', 'print lines until the roll-out ends'],
    ],
  })
    .option('-f, --follow', 'print new lines until the roll-out ends')
    .action(async (app: string, version: string, options: CommonOptions & { follow?: boolean }) => {
      const { output, service: connect } = toolsOf(settings, options);
      const service = connect();
      if (options.follow) {
        const versions = new Versions(service, app, new Progress(output.json));
        await versions.follow(segment(version), 0, (line) => output.item(line, () => line.text));
        return;
      }
      const text = await service.text('GET', `/apps/${segment(app)}/versions/${segment(version)}/log`);
      output.result(text, () =>
        (JSON.parse(text) as { lines: { text: string }[] }).lines.map((line) => line.text).join('\n'),
      );
    });
}
