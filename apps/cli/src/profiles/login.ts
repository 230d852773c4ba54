// `inference-proxy login`: checks a token and stores it as a profile.
import { text as textOf } from 'node:stream/consumers';
import { password, text } from '@clack/prompts';
import type { Command } from 'commander';
import { DEVELOPMENT_URL, projectOf, serviceUrl } from '../service/connection.ts';
import { Failure } from '../service/failures.ts';
import { Service } from '../service/service.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, toolsOf } from '../terminal/command.ts';
import { answered } from '../terminal/prompt.ts';
import { storeProfile } from './profiles.ts';

interface Options extends CommonOptions {
  readonly url?: string;
  readonly profile: string;
  readonly check: boolean;
}

export function addLogin(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'login',
    does: 'Checks a token and stores it as a profile that only you can read',
    examples: [
      ['inference-proxy login', 'ask for the URL and the token'],
      [
        'inference-proxy token --project demo | inference-proxy login --url http://127.0.0.1:8080',
        'log in at the development stack',
      ],
      [
        'inference-proxy login --profile production --url https://api.example.com < token.txt',
        'store a second profile',
      ],
    ],
  })
    .option('--url <url>', `URL of the gateway; default: INFERENCE_PROXY_URL, or ${DEVELOPMENT_URL}`)
    .option('--project <name>', 'project of commands without --project; default: the project of the token')
    .option('--profile <name>', 'name of the profile', 'default')
    .option('--no-check', 'store the token without a request to the service')
    .action(async (options: Options) => {
      const { output } = toolsOf(settings, options);
      const given = options.url ?? settings.url;
      const url = serviceUrl(given ?? (output.isTerminal ? await askUrl() : DEVELOPMENT_URL), '--url');
      const token = (process.stdin.isTTY ? await askToken(output.isTerminal) : await textOf(process.stdin)).trim();
      if (token === '') throw new Failure('usage', 'The token is empty: write it to standard input, or type it');
      const project = options.project ?? projectOf(token);
      if (options.check) await check(url, token, project);
      const profile = { url, token, ...(project !== undefined && { project }) };
      const path = storeProfile(settings.configDir, options.profile, profile);
      output.result(JSON.stringify({ profile: options.profile, url, project, path }), () =>
        [
          `Stored the profile "${options.profile}" for ${url} in ${path}`,
          ...(project === undefined ? ['Commands need --project, because the token opens several projects'] : []),
        ].join('\n'),
      );
    });
}

/** @throws Failure if the service rejects the token. A token that may only call is accepted. */
async function check(url: string, token: string, project: string | undefined): Promise<void> {
  if (project === undefined) return;
  try {
    await new Service({ url, token, project }).text('GET', '');
  } catch (error) {
    const lacksScope = error instanceof Failure && /\bscope\b/.test(error.message);
    // A project without apps is unknown to the service.
    const isEmpty = error instanceof Failure && error.exit === 'notFound';
    if (!lacksScope && !isEmpty) throw error;
  }
}

const askUrl = async (): Promise<string> =>
  answered(await text({ message: 'URL of the gateway', initialValue: DEVELOPMENT_URL, output: process.stderr }));

async function askToken(isTerminal: boolean): Promise<string> {
  if (!isTerminal) throw new Failure('usage', 'Write the token to standard input');
  return answered(await password({ message: 'Token', output: process.stderr }));
}
