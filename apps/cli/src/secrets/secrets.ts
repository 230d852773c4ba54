// `inference-proxy secrets`: sets, removes and lists the secrets of an app.
import { text as textOf } from 'node:stream/consumers';
import { password } from '@clack/prompts';
import type { Command } from 'commander';
import { Failure } from '../service/failures.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf } from '../terminal/command.ts';
import { table } from '../terminal/output.ts';
import { answered } from '../terminal/prompt.ts';

export function addSecrets(program: Command, settings: Settings): void {
  const secrets = program.command('secrets').description('Sets, removes and lists the secrets of an app');
  addSet(secrets, settings);
  addUnset(secrets, settings);
  addList(secrets, settings);
}

const pathOf = (app: string, name: string): string => `/apps/${segment(app)}/secrets/${segment(name)}`;

function addSet(secrets: Command, settings: Settings): void {
  defineCommand(secrets, {
    form: 'set <app> <name>',
    does: 'Sets a secret, and restarts the app with it. Without =VALUE, the value comes from standard input or a question',
    connects: true,
    examples: [
      ['inference-proxy secrets set hello API_KEY', 'ask for the value, which the shell does not record'],
      ['inference-proxy secrets set hello API_KEY < key.txt', 'read the value of a file'],
      ['inference-proxy secrets set hello MODE=fast', 'set a value that everybody may see'],
    ],
  }).action(async (app: string, given: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const split = given.indexOf('=');
    const name = split === -1 ? given : given.slice(0, split);
    const value = split === -1 ? await readValue(name, output.isTerminal) : given.slice(split + 1);
    await service().text('PUT', pathOf(app, name), {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ value }),
    });
    output.result(JSON.stringify({ app, name }), () => `Set ${name}. The app ${app} restarts without lost calls`);
  });
}

/** Returns the value from standard input without its last line break, or from a hidden question. */
async function readValue(name: string, isTerminal: boolean): Promise<string> {
  if (!process.stdin.isTTY) return (await textOf(process.stdin)).replace(/\r?\n$/, '');
  if (!isTerminal) throw new Failure('usage', `Write the value of ${name} to standard input, or give ${name}=VALUE`);
  return answered(await password({ message: `Value of ${name}`, output: process.stderr }));
}

function addUnset(secrets: Command, settings: Settings): void {
  defineCommand(secrets, {
    form: 'unset <app> <name>',
    does: 'Removes a secret, and restarts the app without it',
    connects: true,
    examples: [['inference-proxy secrets unset hello API_KEY', 'remove a secret']],
  }).action(async (app: string, name: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    await service().text('DELETE', pathOf(app, name));
    output.result(JSON.stringify({ app, name }), () => `Removed ${name}. The app ${app} restarts without lost calls`);
  });
}

function addList(secrets: Command, settings: Settings): void {
  defineCommand(secrets, {
    form: 'list <app>',
    does: 'Lists the names of the secrets of an app; nobody can read their values',
    connects: true,
    examples: [['inference-proxy secrets list hello', 'print names and dates']],
  }).action(async (app: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('GET', `/apps/${segment(app)}/secrets`);
    output.result(text, () =>
      table(
        ['NAME', 'UPDATED'],
        (JSON.parse(text) as { secrets: { name: string; updated_at: string }[] }).secrets.map((one) => [
          one.name,
          one.updated_at,
        ]),
      ),
    );
  });
}
