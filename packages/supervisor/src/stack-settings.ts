// Contract 6: the settings of `npm start`. All settings are optional.
import { join } from 'node:path';
import { commonSettings, flag, list, port, redisUrl, secret, settingsOf, text } from '@inference-proxy/platform';
import { z } from 'zod';
import { dataFolder, projectRoot } from './folders.ts';

/** The loopback networks, because a receiver may run on this machine in development. */
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

export class StackSettings extends settingsOf(
  z.object({
    PORT: port().prefault('8080').describe('port of the gateway'),
    HOST: text('an address of this machine').default('127.0.0.1').describe('address on which the gateway listens'),
    RECEIVER_PORT: port().prefault('8090').describe('port of the example webhook receiver'),
    CONSOLE: flag().prefault('true').describe('whether the gateway serves the web page at /console'),
    REDIS_URL: redisUrl().optional().describe('an existing Redis, 7.0 or later; default: npm start starts a Redis'),
    DATA_DIR: text('a folder').default(dataFolder()).describe('folder of Redis, the secrets and the process ids'),
    DEPLOYMENTS_DIR: text('a folder')
      .default(join(projectRoot(), 'examples'))
      .describe('<dir>/<project_id>/<app_name>/ holds an app'),
    JWT_SECRET: secret().optional().describe('verifies tokens; default: a secret that is made once and kept'),
    JWT_SECRETS: secret().optional().describe('further keys of tokens, in the form of the gateway’s setting'),
    SECRETS_KEY: secret().optional().describe('seals webhook secrets; default: a key that is made once and kept'),
    SHUTDOWN_DELAY_S: commonSettings.SHUTDOWN_DELAY_S,
    SHUTDOWN_GRACE_S: commonSettings.SHUTDOWN_GRACE_S,
    WEBHOOK_ALLOWED_NETWORKS: list()
      .prefault('')
      .transform((networks) => [...new Set([...networks, ...LOOPBACK])])
      .describe(
        'networks that webhooks may reach although they are not public; in development always includes this machine',
      ),
  }),
) {}
