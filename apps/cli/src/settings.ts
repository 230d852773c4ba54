// Contract 7, "Command line": the environment variables of the program.
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface Settings {
  /** `INFERENCE_PROXY_URL`: the gateway. */
  readonly url: string | undefined;
  /** `INFERENCE_PROXY_TOKEN`: the bearer token. */
  readonly token: string | undefined;
  /** `INFERENCE_PROXY_WEBHOOK_SECRET`: signs the delivery of a call with `--webhook`. */
  readonly webhookSecret: string | undefined;
  /** The folder of the profiles. */
  readonly configDir: string;
  /** `DATA_DIR` and `JWT_SECRET` of the development stack. */
  readonly dataDir: string | undefined;
  readonly jwtSecret: string | undefined;
  /** The folder in which the user typed the command. npm scripts run in the folder of their package. */
  readonly cwd: string;
  /** The whole environment, for processes that this program starts. */
  readonly environment: NodeJS.ProcessEnv;
}

export function readSettings(env: NodeJS.ProcessEnv = process.env): Settings {
  // An empty variable counts as not set, because compose files cannot unset a variable.
  const value = (name: string): string | undefined => env[name]?.trim() || undefined;
  return {
    url: value('INFERENCE_PROXY_URL'),
    token: value('INFERENCE_PROXY_TOKEN'),
    webhookSecret: value('INFERENCE_PROXY_WEBHOOK_SECRET'),
    configDir: join(value('XDG_CONFIG_HOME') ?? join(homedir(), '.config'), 'inference-proxy'),
    dataDir: value('DATA_DIR'),
    jwtSecret: value('JWT_SECRET'),
    cwd: value('INIT_CWD') ?? process.cwd(),
    environment: env,
  };
}
