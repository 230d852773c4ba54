// `inference-proxy token`: makes or revokes a token of the development stack. `npm run token` is the same command.
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { dataFolder } from '@inference-proxy/supervisor/folders';
import { jwtSecretFile } from '@inference-proxy/supervisor/secrets';
import type { Command } from 'commander';
import { Failure } from '../service/failures.ts';
import type { Settings } from '../settings.ts';
import { defineCommand, toolsOf, wholeNumber } from '../terminal/command.ts';
import { output as outputOf, programOf, repository } from './programs.ts';

interface Options {
  readonly json?: boolean;
  readonly project: string;
  readonly ttl: number;
  readonly scope?: string;
  readonly sub?: string;
  readonly kid?: string;
  readonly revoke?: string;
  readonly revokeSubject?: string;
}

export function addToken(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'token',
    does: 'Prints or revokes a token of the development stack of this repository',
    examples: [
      ['inference-proxy token --project demo', 'print a token that is valid for an hour'],
      ['inference-proxy token --project demo --scope "call runs:read" --ttl 86400', 'limit the scope, for a day'],
      ['inference-proxy token --project demo --revoke "$TOKEN"', 'revoke a token'],
    ],
  })
    .requiredOption('--project <name>', 'project of the token; * for all projects')
    .option('--ttl <seconds>', 'lifetime', wholeNumber(1), 3600)
    .option('--scope <scopes>', 'scopes, separated by spaces; default: call, runs:read and runs:write')
    .option('--sub <name>', 'the caller; default: operator')
    .option('--kid <name>', 'name of a key in JWT_SECRETS')
    .option('--revoke <token>', 'revoke this token, or the token with this jti')
    .option('--revoke-subject <name>', 'revoke the tokens of this caller that were issued so far')
    .action(async (options: Options) => {
      const { output } = toolsOf(settings, { json: options.json === true });
      const { code, stdout } = await outputOf(programOf('gateway', 'token'), argumentsOf(options), {
        ...settings.environment,
        JWT_SECRET: secretOf(settings),
      });
      if (code !== 0) {
        process.exitCode = code;
        return;
      }
      const text = stdout.trim();
      const revoked = options.revoke !== undefined || options.revokeSubject !== undefined;
      output.result(JSON.stringify(revoked ? { revoked: true } : { token: text }), () => text);
    });
}

function argumentsOf({ project, ttl, scope, sub, kid, revoke, revokeSubject }: Options): string[] {
  const given = { project, ttl: String(ttl), scope, sub, kid, revoke, 'revoke-subject': revokeSubject };
  // `--name=value`, because a value may begin with a dash.
  return Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
}

/** Returns the secret that signs. @throws Failure if there is no secret */
function secretOf({ jwtSecret, dataDir }: Settings): string {
  if (jwtSecret !== undefined) return jwtSecret;
  const file = jwtSecretFile(resolve(repository(), dataDir ?? dataFolder()));
  if (!existsSync(file))
    throw new Failure('failed', 'There is no development secret: run npm start first, which creates the secret');
  return readFileSync(file, 'utf8').trim();
}
