// `inference-proxy apps`: lists, shows and deletes the apps of the project (contract 7, "Apps").
import { confirm } from '@clack/prompts';
import type { Command } from 'commander';
import { Failure } from '../service/failures.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf } from '../terminal/command.ts';
import { fields, table } from '../terminal/output.ts';
import { answered } from '../terminal/prompt.ts';

interface App {
  readonly name: string;
  readonly state: string;
  readonly reason?: string;
  readonly version?: string;
  readonly functions: readonly { readonly name: string }[];
}

export function addApps(program: Command, settings: Settings): void {
  const apps = program.command('apps').description('Lists, reads and deletes apps');
  defineCommand(apps, {
    form: 'list',
    isDefault: true,
    does: 'Lists the apps of the project with their state and their functions',
    connects: true,
    examples: [['inference-proxy apps list --project demo', 'print the apps of a project']],
  }).action(async (options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('GET', '/apps');
    output.result(text, () =>
      table(
        ['APP', 'STATE', 'VERSION', 'FUNCTIONS'],
        (JSON.parse(text) as { apps: App[] }).apps.map(({ name, state, version = '', functions, reason }) => [
          name,
          state,
          version.slice(0, 12),
          reason ?? functions.map((fn) => fn.name).join(', '),
        ]),
      ),
    );
  });
  defineCommand(apps, {
    form: 'show <app>',
    does: 'Prints an app with its functions, its latest versions and its activations',
    connects: true,
    examples: [['inference-proxy apps show hello', 'print one app']],
  }).action(async (app: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('GET', `/apps/${segment(app)}`);
    output.result(text, () => fields(text));
  });
  addDelete(apps, settings);
}

function addDelete(apps: Command, settings: Settings): void {
  defineCommand(apps, {
    form: 'delete <app>',
    does: 'Deletes a deployed app with all its versions',
    connects: true,
    examples: [['inference-proxy apps delete hello --yes', 'delete the app without a question']],
  })
    .option('--yes', 'do not ask')
    .action(async (app: string, options: CommonOptions & { yes?: boolean }) => {
      const { output, service: connect } = toolsOf(settings, options);
      const service = connect();
      if (!options.yes) {
        if (!output.isTerminal) throw new Failure('usage', 'Deleting an app needs --yes outside a terminal');
        const message = `Delete the app ${app} of the project ${service.project} with all its versions?`;
        const agreed = answered(await confirm({ message, initialValue: false, output: process.stderr }));
        if (!agreed) throw new Failure('interrupted', 'Cancelled');
      }
      const text = await service.text('DELETE', `/apps/${segment(app)}`);
      output.result(text, () => `The app ${app} takes no new calls`);
    });
}
