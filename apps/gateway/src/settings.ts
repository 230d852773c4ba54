// Contract 6: the gateway's settings, as schema, type and injection token.
import { bundleStoreSettings } from '@inference-proxy/bundles';
import { parseSecretKeys } from '@inference-proxy/crypto';
import { parseNetworks } from '@inference-proxy/egress';
import {
  bytes,
  commonSettings,
  flag,
  list,
  milliseconds,
  operationsPort,
  port,
  seconds,
  secret,
  settingsOf,
  text,
} from '@inference-proxy/platform';
import { z } from 'zod';
import { keySetUrl } from './auth/key-set.ts';
import { namedKeysOf } from './auth/named-keys.ts';
import { publicKeyOfPem } from './auth/token-keys.ts';
import { corsOrigins } from './http/cors.ts';

/** With this age, a slow answer of the provider and differing clocks, a withdrawn key still stops within 5 minutes. */
const LONGEST_KEY_SET_AGE_S = 290;
const DAY_S = 86_400;
/** The store keeps these times, so no Node timer limits them. Ten years still fit into the scores and expiries of Redis. */
const TEN_YEARS_S = 315_360_000;

/** Returns a setting whose text `parse` reads. The Errors of `parse` name the reason and show no secret. */
const parsedBy = <T, Value = string>(parse: (value: Value) => T) =>
  z.transform((value: Value, context): T => {
    try {
      return parse(value);
    } catch (error) {
      context.issues.push({ code: 'custom', message: error instanceof Error ? error.message : 'wrong', input: value });
      return z.NEVER;
    }
  });

const KEY_SETTINGS = ['JWT_SECRET', 'JWT_PUBLIC_KEY', 'JWT_JWKS_URL'] as const;

export class GatewaySettings extends settingsOf(
  z
    .object({
      ...commonSettings,
      OPERATIONS_PORT: operationsPort('9464'),
      HOST: text('an address to listen on')
        .prefault('127.0.0.1')
        .describe('address to listen on; 0.0.0.0 in containers'),
      PORT: port().prefault('8080').describe('port to listen on; 0 lets the system choose'),
      // RFC 7518 §3.2: a key of HS256 has at least 256 bits.
      JWT_SECRET: secret('at least 32 characters', 32)
        .refine((value) => !value.includes('-----BEGIN'), 'expected a secret, got a PEM: give it as JWT_PUBLIC_KEY')
        .optional()
        .describe(
          'key of the callers’ tokens (HS256); exactly one of JWT_SECRET, JWT_PUBLIC_KEY and JWT_JWKS_URL is required',
        ),
      JWT_SECRETS: secret('<kid>:<secret> or <kid>@<project>:<secret>, separated by commas')
        .pipe(parsedBy(namedKeysOf))
        .optional()
        .describe(
          'further keys (HS256) by `kid`, separated by commas: <kid>:<secret>, or <kid>@<project>:<secret> for one project',
        ),
      // Messages treat this key as a secret, because it may be a private key by mistake.
      JWT_PUBLIC_KEY: secret('a public key as PEM')
        .pipe(parsedBy(publicKeyOfPem))
        .optional()
        .describe('public key of the callers’ tokens as PEM (RSA: RS256 and PS256; P-256: ES256)'),
      JWT_JWKS_URL: text('an http or https URL')
        .pipe(parsedBy(keySetUrl))
        .optional()
        .describe('URL of the key set of the callers’ tokens at an identity provider (RS256, PS256, ES256)'),
      JWT_JWKS_MAX_AGE_S: seconds()
        .refine((value) => value >= 1 && value <= LONGEST_KEY_SET_AGE_S, `expected 1 to ${LONGEST_KEY_SET_AGE_S}`)
        .prefault('240')
        .describe('longest time for which the gateway accepts a withdrawn key of the key set'),
      JWT_JWKS_COOLDOWN_S: seconds()
        .prefault('30')
        .describe('longest time until the gateway accepts a new key of the key set'),
      JWT_ISSUER: text('a name').optional().describe('required `iss` of a token'),
      JWT_AUDIENCE: text('a name').optional().describe('required `aud` of a token'),
      SECRETS_KEY: secret('base64 of 32 bytes, several separated by commas')
        .pipe(parsedBy(parseSecretKeys))
        .describe('keys that encrypt webhook secrets and secrets of apps at rest; newest key first'),
      CORS_ORIGINS: list()
        .pipe(parsedBy(corsOrigins))
        .prefault('')
        .describe('origins whose pages may call the API, such as https://app.example.com; * for all'),
      CONSOLE: flag().prefault('true').describe('serve the web page at /console'),
      TRUSTED_PROXIES: text()
        .prefault('')
        .pipe(parsedBy(parseNetworks))
        .describe('CIDR list of the proxies before the gateway; custom runtimes receive their `X-Forwarded-*`'),
      MAX_BODY_BYTES: bytes().prefault('8MiB').describe('largest body of a call'),
      ...bundleStoreSettings,
      BUNDLE_RETENTION_S: seconds(TEN_YEARS_S).prefault('86400').describe('time for which an unused bundle is kept'),
      MAX_BUNDLE_BYTES: bytes().prefault('256MiB').describe('largest bundle of a deployment'),
      ROLL_OUT_TIMEOUT_S: seconds()
        .prefault('600')
        .describe('time in which all workers of an app must be ready for a new version; then the roll-out is undone'),
      BODIES_IN_FLIGHT_BYTES: bytes()
        .prefault('256MiB')
        .describe('limit for the sum of received bodies that are not yet in the store; at the limit, calls return 429'),
      ANSWERS_IN_FLIGHT_BYTES: bytes()
        .prefault('256MiB')
        .describe(
          'limit for the sum of large answers that wait for slow readers; at the limit, further answers stay in the store',
        ),
      ANSWER_STALL_S: seconds().prefault('60').describe('time until a reader that takes no bytes is disconnected'),
      REQUEST_TIMEOUT_S: seconds()
        .refine((value) => value >= 0.1 && value <= DAY_S, `expected a time from 0.1 to ${DAY_S} seconds`)
        .prefault('120')
        .describe('time limit for a request to arrive; a quarter of it for the head'),
      STREAM_COMMIT_MS: milliseconds()
        .prefault('10000')
        .describe('longest wait of a stream’s status line for the first item'),
      RUN_RETENTION_S: seconds(TEN_YEARS_S)
        .prefault('86400')
        .describe('time for which a promised run is kept after its end'),
      SYNC_RUN_RETENTION_S: seconds(TEN_YEARS_S)
        .prefault('600')
        .describe('time for which an unpromised run is kept after its end'),
      RUN_STORE_MAX_BYTES: bytes()
        .optional()
        .describe('largest size of the run store; not set: 60 % of the maxmemory of Redis, or 1 GiB without maxmemory'),
      REVOCATION_RETENTION_S: seconds(TEN_YEARS_S)
        .prefault('7776000')
        .describe(
          'time for which a revocation is kept if the expiry of its token is unknown; tokens should not live longer',
        ),
      WORKER_GRACE_S: seconds().prefault('30').describe('queue time of calls for an app without a worker'),
      WEBHOOK_ALLOWED_NETWORKS: text()
        .prefault('')
        .pipe(parsedBy(parseNetworks))
        .describe('CIDR list of private networks that webhooks may go to'),
      WEBHOOK_REQUIRE_HTTPS: flag().prefault('false').describe('reject webhooks to plain http'),
      LEASE_MS: milliseconds()
        .prefault('15000')
        .describe('lease of a gateway: time without a renewal until it counts as dead'),
      ATTEND_MS: milliseconds().prefault('5000').describe('interval at which a gateway reports the runs that it reads'),
      REAP_MS: milliseconds()
        .prefault('1000')
        .describe('interval at which a gateway looks for runs of dead workers and gateways'),
    })
    .refine((given) => KEY_SETTINGS.filter((name) => given[name] !== undefined).length === 1, {
      error: `expected exactly one of ${KEY_SETTINGS.join(', ')}`,
      // Run this check also if another setting is wrong, so that the gateway reports all problems at once.
      when: ({ issues }) => !issues.some(({ path }) => KEY_SETTINGS.some((name) => name === path?.[0])),
    })
    .refine((given) => given.BODIES_IN_FLIGHT_BYTES >= given.MAX_BODY_BYTES, {
      error: 'BODIES_IN_FLIGHT_BYTES is wrong: expected at least MAX_BODY_BYTES',
    }),
) {}
