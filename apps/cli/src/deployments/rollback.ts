// `inference-proxy rollback`: activates an earlier version of an app.
import type { Command } from 'commander';
import { Failure } from '../service/failures.ts';
import type { Service } from '../service/service.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf } from '../terminal/command.ts';
import { Progress } from '../terminal/progress.ts';
import { notActive, short, Versions } from './versions-api.ts';

interface AppHistory {
  readonly version?: string;
  /** Newest first. */
  readonly activations: readonly { readonly version: string }[];
}

export function addRollback(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'rollback <app> [version]',
    does: 'Activates the version that was active before, or a named version',
    connects: true,
    examples: [
      ['inference-proxy rollback hello', 'go back to the version that was active before'],
      ['inference-proxy rollback hello 9f86d081', 'activate this version'],
    ],
  }).action(async (app: string, given: string | undefined, options: CommonOptions) => {
    const { output, service: connect } = toolsOf(settings, options);
    const service = connect();
    const progress = new Progress(output.json);
    const versions = new Versions(service, app, progress);
    const version = given ?? (await previous(service, app));
    const seen = await versions.logLength(version);
    await versions.activate(version);
    const ended = await versions.follow(version, seen, ({ text }) => progress.line(`  ${text}`));
    if (ended.state !== 'active') throw notActive(ended);
    output.result(
      JSON.stringify({ app, version: ended.version, state: ended.state }),
      () => `${app} ${short(ended.version)} is active`,
    );
  });
}

/** Returns the version that was active before the present version. @throws Failure if there is none */
async function previous(service: Service, app: string): Promise<string> {
  const text = await service.text('GET', `/apps/${segment(app)}`);
  const { version, activations } = JSON.parse(text) as AppHistory;
  const found = activations.find((one) => one.version !== version);
  if (found === undefined) throw new Failure('notFound', `The app ${app} has no earlier version`);
  return found.version;
}
