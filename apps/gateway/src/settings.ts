// Contract 6: the gateway's settings. Schema, type and injection token in one.
import { parseSecretKeys } from '@inference-proxy/crypto';
import { parseNetworks } from '@inference-proxy/egress';
import {
  bytes,
  commonSettings,
  flag,
  milliseconds,
  operationsPort,
  port,
  seconds,
  secret,
  settingsOf,
  text,
} from '@inference-proxy/platform';
import { z } from 'zod';

/** A setting whose text `parse` understands or refuses with an Error that says why (and shows no secret). */
const parsedBy = <T>(parse: (value: string) => T) =>
  z.transform((value: string, context): T => {
    try {
      return parse(value);
    } catch (error) {
      context.issues.push({ code: 'custom', message: error instanceof Error ? error.message : 'wrong', input: value });
      return z.NEVER;
    }
  });

export class GatewaySettings extends settingsOf(
  z.object({
    ...commonSettings,
    OPERATIONS_PORT: operationsPort('9464'),
    HOST: text('an address to listen on').prefault('127.0.0.1').describe('address to listen on; 0.0.0.0 in containers'),
    PORT: port().prefault('8080').describe('port to listen on; 0 lets the system choose'),
    // RFC 7518 §3.2: a key of HS256 has at least 256 bits.
    JWT_SECRET: secret('at least 32 characters', 32).describe('key of the callers’ tokens (HS256)'),
    JWT_ISSUER: text('a name').optional().describe('the only `iss` that is accepted'),
    JWT_AUDIENCE: text('a name').optional().describe('the `aud` that a token must name'),
    SECRETS_KEY: secret('base64 of 32 bytes, several separated by commas')
      .pipe(parsedBy(parseSecretKeys))
      .describe('seals webhook secrets at rest; newest key first'),
    MAX_BODY_BYTES: bytes().prefault('8MiB').describe('largest body of a call'),
    STREAM_COMMIT_MS: milliseconds()
      .prefault('10000')
      .describe('longest time that a stream’s status line is held back for its first item'),
    RUN_RETENTION_S: seconds().prefault('86400').describe('how long a promised run is kept after its end'),
    SYNC_RUN_RETENTION_S: seconds().prefault('600').describe('how long any other run is kept after its end'),
    WORKER_GRACE_S: seconds().prefault('30').describe('how long calls queue for an app that no worker serves'),
    WEBHOOK_ALLOWED_NETWORKS: text()
      .prefault('')
      .pipe(parsedBy(parseNetworks))
      .describe('CIDR list of private networks that webhooks may go to'),
    WEBHOOK_REQUIRE_HTTPS: flag().prefault('false').describe('refuse webhooks to plain http'),
    LEASE_MS: milliseconds().prefault('15000').describe('how long a gateway is believed to be alive without word'),
    ATTEND_MS: milliseconds().prefault('5000').describe('how often a gateway says which runs it reads'),
    REAP_MS: milliseconds().prefault('1000').describe('how often a gateway looks for runs that nobody ends any more'),
  }),
) {}
