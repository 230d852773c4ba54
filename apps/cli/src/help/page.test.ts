// docs/cli.md is the program's own help, and every command has the same parts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { repository } from '../development/programs.ts';
import { programOf } from '../program.ts';
import { readSettings } from '../settings.ts';
import { cliPage } from './page.ts';

const program = programOf(readSettings({}));
const page = readFileSync(join(repository(), 'docs', 'cli.md'), 'utf8');

test('docs/cli.md is the help of the program: npm run page:cli writes the page', () => {
  expect(cliPage(programOf(readSettings({})))).toBe(page);
});

const commandsOf = (command: Command): Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== 'help')
    .flatMap((one) => (one.commands.length > 0 ? commandsOf(one) : [one]));

test.each(commandsOf(program).map((command) => [command.name(), command] as const))(
  '%s has --json, and an example that names it',
  (name, command) => {
    expect(command.options.map(({ long }) => long)).toContain('--json');
    const [, help = ''] = page.split(new RegExp(`^## (?:\\w+ )?${name}$`, 'm'));
    const [, examples = ''] = help.split('\n## ', 1)[0]?.split('Examples:') ?? [];
    expect(examples).toMatch(new RegExp(`inference-proxy (?:\\w+ )?${name}\\b`));
  },
);
