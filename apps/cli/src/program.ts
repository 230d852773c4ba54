// The commands of the program, in the order of its help.
import { Command } from 'commander';
import { addApps } from './apps/apps.ts';
import { addCall } from './calls/call.ts';
import { addStream } from './calls/stream.ts';
import { addDeliveries, addRedeliver } from './deliveries/deliveries.ts';
import { addDeploy } from './deployments/deploy.ts';
import { addRollback } from './deployments/rollback.ts';
import { addVersions } from './deployments/versions.ts';
import { addCheck } from './development/check.ts';
import { addDev } from './development/dev.ts';
import { addInit } from './development/init.ts';
import { addToken } from './development/token.ts';
import { addCompletion } from './help/completion.ts';
import { addLogin } from './profiles/login.ts';
import { addCancel } from './runs/cancel.ts';
import { addLogs } from './runs/logs.ts';
import { addRuns } from './runs/runs.ts';
import { addSecrets } from './secrets/secrets.ts';
import { EXIT_CODES } from './service/failures.ts';
import type { Settings } from './settings.ts';

const ENVIRONMENT = [
  ['INFERENCE_PROXY_URL', 'URL of the gateway'],
  ['INFERENCE_PROXY_TOKEN', 'bearer token; takes precedence over the profile "default"'],
  ['INFERENCE_PROXY_WEBHOOK_SECRET', 'signs the delivery of call --webhook'],
] as const;

const columns = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`).join('\n');
};

/** Returns the program. Commander throws a CommanderError instead of ending the process. */
export function programOf(settings: Settings): Command {
  const program = new Command('inference-proxy')
    .description('The command line of inference-proxy: write, deploy and call apps')
    .exitOverride()
    // main.ts prints the error, as text or as JSON.
    .configureOutput({ outputError: () => {} })
    .configureHelp({ showGlobalOptions: false })
    .addHelpText('after', `\nEnvironment:\n${columns(ENVIRONMENT)}\n\nExit codes:\n${exitCodes()}`);
  addInit(program, settings);
  addDev(program, settings);
  addCheck(program, settings);
  addLogin(program, settings);
  addToken(program, settings);
  addDeploy(program, settings);
  addVersions(program, settings);
  addSecrets(program, settings);
  addRollback(program, settings);
  addApps(program, settings);
  addCall(program, settings);
  addStream(program, settings);
  addRuns(program, settings);
  addLogs(program, settings);
  addCancel(program, settings);
  addDeliveries(program, settings);
  addRedeliver(program, settings);
  addCompletion(program, settings);
  return program;
}

const exitCodes = (): string =>
  columns(Object.values(EXIT_CODES).map(({ code, when }) => [String(code), when] as const));
