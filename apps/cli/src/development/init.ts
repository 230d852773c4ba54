// `inference-proxy init`: creates the folder of an app from a template.
import { cpSync, existsSync, globSync, readdirSync, renameSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { select, text } from '@clack/prompts';
import { isAppName } from '@inference-proxy/contracts';
import { type Command, Option } from 'commander';
import { Failure } from '../service/failures.ts';
import type { Settings } from '../settings.ts';
import { defineCommand, toolsOf } from '../terminal/command.ts';
import { answered } from '../terminal/prompt.ts';

/** The templates: folders in `templates/`. */
const TEMPLATES = { python: 'Python: main.py', typescript: 'TypeScript: main.ts' } as const;
type Template = keyof typeof TEMPLATES;

interface Options {
  readonly json?: boolean;
  readonly template?: Template;
}

const templatesDir = join(import.meta.dirname, '..', '..', 'templates');

export function addInit(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'init [folder]',
    does: 'Creates an app from a template',
    examples: [
      ['inference-proxy init hello', 'create the folder hello, and ask for the template'],
      ['inference-proxy init hello --template typescript', 'create an app in TypeScript, and ask nothing'],
    ],
  })
    .addOption(new Option('--template <name>', 'template; without a terminal: python').choices(Object.keys(TEMPLATES)))
    .action(async (given: string | undefined, options: Options) => {
      const { output } = toolsOf(settings, { json: options.json === true });
      const ask = output.isTerminal;
      const folder = resolve(settings.cwd, given ?? (ask ? await askFolder() : '.'));
      if (!isAppName(basename(folder)))
        throw new Failure(
          'usage',
          `The folder's name "${basename(folder)}" is not valid or reserved as the name of an app`,
        );
      if (existsSync(folder) && readdirSync(folder).length > 0)
        throw new Failure('usage', `The folder ${folder} is not empty: choose another folder`);
      const template = options.template ?? (ask ? await askTemplate() : 'python');
      const files = create(folder, template);
      const shown = relative(settings.cwd, folder) || '.';
      output.result(JSON.stringify({ folder, template, files }), () =>
        [
          `Created ${shown} with ${files.join(', ')}`,
          '',
          'Next:',
          ...(shown === '.' ? [] : [`  cd ${shown}`]),
          '  npx inference-proxy dev',
        ].join('\n'),
      );
    });
}

/** Copies a template. @returns the paths of the files */
function create(folder: string, template: Template): string[] {
  cpSync(join(templatesDir, template), folder, { recursive: true });
  // npm leaves out a file named .gitignore when it packs a package.
  renameSync(join(folder, 'gitignore'), join(folder, '.gitignore'));
  return globSync('**/*', { cwd: folder }).concat('.gitignore').sort();
}

const askFolder = async (): Promise<string> =>
  answered(
    await text({ message: 'Folder of the app', placeholder: 'hello', defaultValue: 'hello', output: process.stderr }),
  );

const askTemplate = async (): Promise<Template> =>
  answered(
    await select<Template>({
      message: 'Template',
      options: Object.entries(TEMPLATES).map(([value, label]) => ({ value: value as Template, label })),
      output: process.stderr,
    }),
  );
