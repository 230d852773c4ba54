// `inference-proxy apps`: lists the apps of the project with their functions.
import type { Command } from 'commander';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, toolsOf } from '../terminal/command.ts';
import { table } from '../terminal/output.ts';

interface App {
  readonly app: string;
  readonly state: string;
  readonly version: string;
  readonly functions: readonly { readonly name: string }[];
  readonly error?: { readonly message: string };
}

export function addApps(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'apps',
    does: 'Lists the apps of the project with their state and their functions',
    connects: true,
    examples: [['inference-proxy apps --project demo', 'print the apps of a project']],
  }).action(async (options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('GET', '');
    output.result(text, () =>
      table(
        ['APP', 'STATE', 'VERSION', 'FUNCTIONS'],
        (JSON.parse(text) as { apps: App[] }).apps.map(({ app, state, version, functions, error }) => [
          app,
          state,
          version,
          error?.message ?? functions.map(({ name }) => name).join(', '),
        ]),
      ),
    );
  });
}
