// `inference-proxy completion`: prints the completion script of a shell. The script asks the hidden command `complete`.
import { script } from '@bomb.sh/tab';
import tab from '@bomb.sh/tab/commander';
import { type Command, Option } from 'commander';
import type { Settings } from '../settings.ts';
import { exampleText, toolsOf } from '../terminal/command.ts';

const NAME = 'completion';

/** Adds the command. Add all other commands before, because the completion reads the list of commands once. */
export function addCompletion(program: Command, settings: Settings): void {
  tab(program, { completionCommandName: NAME });
  const command = program.commands.find((one) => one.name() === NAME);
  command
    ?.description('Prints the completion script of a shell')
    .addOption(new Option('--json', 'write the result as JSON'))
    .addHelpText(
      'after',
      `\n${exampleText([
        ['source <(inference-proxy completion bash)', 'complete in this bash; needs the package bash-completion'],
        ['inference-proxy completion zsh > ~/.zfunc/_inference-proxy', 'complete in every new zsh'],
      ])}`,
    )
    .action((shell: string, options: { json?: boolean }) => {
      const text = scriptOf(shell, program.name());
      toolsOf(settings, options).output.result(JSON.stringify({ shell, script: text }), () => text);
    });
}

/** Returns the script. The library can only print it. */
function scriptOf(shell: string, name: string): string {
  const printed: string[] = [];
  const { log } = console;
  console.log = (text: string) => printed.push(text);
  try {
    script(shell, name, name);
  } finally {
    console.log = log;
  }
  return printed.join('\n');
}
