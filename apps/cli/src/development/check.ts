// `inference-proxy check`: reports the problems of an app's folder. `npm run check` is the same command.
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Settings } from '../settings.ts';
import { defineCommand } from '../terminal/command.ts';
import { output, programOf } from './programs.ts';

export function addCheck(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'check [folder]',
    does: 'Reports the problems of an app and its functions, before a deployment',
    examples: [
      ['inference-proxy check', 'check the app in this folder'],
      ['inference-proxy check examples/demo/hello --json', 'print the report as JSON'],
    ],
  }).action(async (folder = '.', { json }: { json?: boolean }) => {
    const path = resolve(settings.cwd, folder);
    const args = [path, ...(json ? ['--json'] : [])];
    const { code, stdout } = await output(programOf('worker', 'check'), args, settings.environment);
    process.stdout.write(stdout);
    process.exitCode = code;
  });
}
