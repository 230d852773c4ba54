// Contract 6, as `npm start` takes it: everything may be set, nothing has to be.
import { join } from 'node:path';
import { commonSettings, list, port, redisUrl, secret, settingsOf, text } from '@inference-proxy/platform';
import { z } from 'zod';
import { dataFolder, projectRoot } from './folders.ts';

/** The loopback networks: in development a receiver may be on this machine. */
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

export class StackSettings extends settingsOf(
  z.object({
    PORT: port().prefault('8080').describe('where the gateway listens'),
    HOST: text('an address of this machine').default('127.0.0.1').describe('the address it listens on'),
    RECEIVER_PORT: port().prefault('8090').describe('where the example webhook receiver listens'),
    REDIS_URL: redisUrl().optional().describe('a Redis of your own, 7.0 or later; otherwise one is started here'),
    DATA_DIR: text('a folder').default(dataFolder()).describe('where Redis, the secrets and the process ids are kept'),
    DEPLOYMENTS_DIR: text('a folder')
      .default(join(projectRoot(), 'examples'))
      .describe('<dir>/<project_id>/<app_name>/ holds an app'),
    JWT_SECRET: secret().optional().describe('verifies tokens; otherwise one is made and kept'),
    JWT_SECRETS: secret().optional().describe('further keys of tokens, as the gateway takes them'),
    SECRETS_KEY: secret().optional().describe('seals webhook secrets; otherwise one is made and kept'),
    SHUTDOWN_DELAY_S: commonSettings.SHUTDOWN_DELAY_S,
    SHUTDOWN_GRACE_S: commonSettings.SHUTDOWN_GRACE_S,
    WEBHOOK_ALLOWED_NETWORKS: list()
      .prefault('')
      .transform((networks) => [...new Set([...networks, ...LOOPBACK])])
      .describe(
        'networks that webhooks may go to although they are not public; this machine is always one in development',
      ),
  }),
) {}
