// Contract 6: defines the dispatcher's settings.
import { parseSecretKeys } from '@inference-proxy/crypto';
import { parseNetworks } from '@inference-proxy/egress';
import {
  commonSettings,
  flag,
  operationsPort,
  seconds,
  secret,
  settingsOf,
  text,
  wholeNumber,
} from '@inference-proxy/platform';
import { z } from 'zod';
import { defaultSchedule } from './deliveries/retry-schedule.ts';

/** Returns a schema that reads a text with `parse`. An error of `parse` is reported as the problem of the setting. */
const read = <T>(piece: z.ZodType<string>, parse: (value: string) => T) =>
  piece.transform((value, context): T => {
    try {
      return parse(value);
    } catch (error) {
      context.issues.push({ code: 'custom', message: (error as Error).message, input: value });
      return z.NEVER;
    }
  });

/** 30 days. */
const LONGEST_DELAY_S = 2_592_000;

function parseSchedule(value: string): readonly number[] {
  const delays = value.split(',').map((part) => (/^\s*\d+(\.\d+)?\s*$/.test(part) ? Number(part) : Number.NaN));
  if (delays[0] !== 0 || !delays.every((delay) => delay <= LONGEST_DELAY_S))
    throw new Error(`expected seconds such as 0,5,300, the first one 0, each at most ${LONGEST_DELAY_S}`);
  return delays;
}

function parseFraction(value: string): number {
  const fraction = /^\d(\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (!(fraction >= 0 && fraction <= 1)) throw new Error('expected a fraction from 0 to 1, such as 0.2');
  return fraction;
}

/** The token protects the contents of jobs, so it must be long enough not to be guessed. */
const SHORTEST_TOKEN = 16;

export class DispatcherSettings extends settingsOf(
  z
    .object({
      ...commonSettings,
      OPERATIONS_PORT: operationsPort('9466'),
      SECRETS_KEY: read(secret('base64 of 32 bytes, or several separated by commas, newest first'), parseSecretKeys)
        .meta({ secret: true })
        .describe(
          'keys that open webhook secrets: base64 of 32 bytes (openssl rand -base64 32), separated by commas, newest first',
        ),
      WEBHOOK_ALLOWED_NETWORKS: read(text('CIDR blocks such as 10.1.0.0/16,fd00::/8'), parseNetworks)
        .prefault('')
        .describe('CIDR list of private networks that webhooks may go to, such as 10.1.0.0/16,fd00::/8'),
      WEBHOOK_REQUIRE_HTTPS: flag().prefault('false').describe('reject webhooks to plain http'),
      WEBHOOK_SCHEDULE: read(text('seconds such as 0,5,300'), parseSchedule)
        .prefault(defaultSchedule.join(','))
        .describe(
          'seconds before each attempt, from the end of the attempt before; the count of numbers is the count of attempts',
        ),
      WEBHOOK_JITTER: read(text('a fraction from 0 to 1'), parseFraction)
        .prefault('0.2')
        .describe('fraction by which each delay of the schedule varies, up and down'),
      WEBHOOK_CONNECT_TIMEOUT_S: seconds()
        .prefault('5')
        .describe('time limit for name lookup, TCP and TLS of an attempt'),
      WEBHOOK_TIMEOUT_S: seconds()
        .prefault('15')
        .describe('time limit from the start of an attempt to the head of the answer'),
      WEBHOOK_RECORD_S: seconds()
        .prefault('10')
        .describe('time for Redis to record an attempt; after it, the attempt counts as not made'),
      WEBHOOK_CONCURRENCY: wholeNumber(1, 10_000).prefault('256').describe('concurrent attempts of this dispatcher'),
      WEBHOOK_PROJECT_CONCURRENCY: wholeNumber(1, 100_000)
        .optional()
        .describe(
          'concurrent attempts of one project, over all dispatchers and receivers; not set: three quarters of WEBHOOK_CONCURRENCY',
        ),
      WEBHOOK_HOST_CONCURRENCY: wholeNumber(1, 10_000)
        .prefault('16')
        .describe('concurrent attempts of one project to one host and port, over all dispatchers'),
      WEBHOOK_HOST_CONCURRENCY_PROVEN: wholeNumber(1, 10_000)
        .prefault('48')
        .describe('the same to a receiver that answers quickly and well, if other projects keep their share'),
      WEBHOOK_HOST_CONCURRENCY_ALL: wholeNumber(1, 100_000)
        .prefault('64')
        .describe('concurrent attempts of all projects to one host and port, over all dispatchers'),
      WEBHOOK_PROBE_S: seconds()
        .prefault('5')
        .describe(
          'time from the opening of a circuit to its first probe; each failed probe doubles the time, up to 60 times the setting',
        ),
      QUEUE_DASHBOARD: flag()
        .prefault('false')
        .describe('show the queues of deliveries at /queues of the operations port'),
      OPERATIONS_TOKEN: secret(`a token of at least ${SHORTEST_TOKEN} characters`, SHORTEST_TOKEN)
        .optional()
        .describe(
          'opens /queues, as bearer token or as the password of any user; at least 16 characters; required for QUEUE_DASHBOARD',
        ),
    })
    .refine(({ QUEUE_DASHBOARD, OPERATIONS_TOKEN }) => !QUEUE_DASHBOARD || OPERATIONS_TOKEN !== undefined, {
      path: ['OPERATIONS_TOKEN'],
      error: 'is needed for QUEUE_DASHBOARD',
      // Runs also if another setting is wrong, so that all problems are reported at once.
      when: ({ issues }) =>
        !issues.some(({ path }) => path?.[0] === 'QUEUE_DASHBOARD' || path?.[0] === 'OPERATIONS_TOKEN'),
    }),
) {}
