// The definition of a command: its name, `--json`, its examples and the options of the connection.
import { type Command, InvalidArgumentError } from 'commander';
import { connectionOf } from '../service/connection.ts';
import { Service } from '../service/service.ts';
import type { Settings } from '../settings.ts';
import { Output } from './output.ts';

/** A command line, and what it does. */
export type Example = readonly [command: string, meaning: string];

export interface Definition {
  /** The name and the arguments in commander's form, such as `cancel <run>`. */
  readonly form: string;
  readonly does: string;
  readonly examples: readonly Example[];
  /** Adds `--project` and `--profile`. */
  readonly connects?: boolean;
  /** Runs this command if the user names only its group, such as `runs`. */
  readonly isDefault?: boolean;
}

/** Options of every command that connects. */
export interface CommonOptions {
  readonly json?: boolean;
  readonly project?: string;
  readonly profile?: string;
}

/** What an action receives beside its arguments and options. */
export interface Tools {
  readonly settings: Settings;
  readonly output: Output;
  /** Returns the service of the command. @throws Failure if the token or the project is missing */
  service(): Service;
}

/** Adds a command with `--json` and the examples in its help. */
export function defineCommand(
  parent: Command,
  { form, does, examples, connects = false, isDefault = false }: Definition,
): Command {
  const command = parent.command(form, { isDefault }).description(does).option('--json', 'write the result as JSON');
  if (connects)
    command
      .option('--project <name>', 'project; default: the project of the profile or of the token')
      .option('--profile <name>', 'profile that login has stored; default: the environment, then "default"');
  return command.addHelpText('after', `\n${exampleText(examples)}`);
}

/** Returns the examples as the help shows them. */
export const exampleText = (examples: readonly Example[]): string =>
  ['Examples:', ...examples.map(([command, meaning]) => `  # ${meaning}\n  ${command}`)].join('\n');

/** Returns the tools of an action with these options. */
export function toolsOf(settings: Settings, options: CommonOptions): Tools {
  return {
    settings,
    output: new Output(options.json === true),
    service: () => new Service(connectionOf(settings, options)),
  };
}

/** Reads a whole number of at least `least`, for commander. */
export const wholeNumber =
  (least: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < least)
      throw new InvalidArgumentError(`Expected a whole number of at least ${least}.`);
    return value;
  };

/** Takes a path segment from a user. */
export const segment = (text: string): string => encodeURIComponent(text);
