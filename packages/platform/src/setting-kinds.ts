// Contract 6, "Settings": zod types that parse the text of an environment variable.
import { z } from 'zod';

/** Returns a zod type for texts that `parse` accepts. `expected` completes the sentence "expected …". */
function kind<T>(expected: string, parse: (text: string) => T | undefined) {
  return z.string({ error: `expected ${expected}` }).transform((text, context): T => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.issues.push({ code: 'custom', message: `expected ${expected}`, input: text });
    return z.NEVER;
  });
}

function whole(text: string, least: number, most: number): number | undefined {
  if (!/^\d+$/.test(text)) return undefined;
  const value = Number(text);
  return value >= least && value <= most ? value : undefined;
}

/** A whole number from `least` to `most`. */
export const wholeNumber = (least = 0, most = Number.MAX_SAFE_INTEGER) =>
  kind(
    most === Number.MAX_SAFE_INTEGER
      ? `a whole number of at least ${least}`
      : `a whole number from ${least} to ${most}`,
    (text) => whole(text, least, most),
  );

/** A TCP port; 0 lets the system choose. */
export const port = () => kind('a port number from 0 to 65535', (text) => whole(text, 0, 65_535));

// Node's timers accept at most 2^31-1 ms. A longer timer would fire at once.
const LONGEST_MS = 2_147_483_647;

/** A duration in milliseconds; the setting's name ends with `_MS`. */
export const milliseconds = () =>
  kind(`a whole number of milliseconds, at most ${LONGEST_MS}`, (text) => whole(text, 0, LONGEST_MS));

/** The longest `seconds()`: below `LONGEST_MS`, so that a service may add a minute to a setting in one timer. */
const LONGEST_S = 2_000_000;

/**
 * A duration in seconds; the setting's name ends with `_S`. Fractions are allowed, so that tests can use short times.
 *
 * @param most may exceed the default only if no timer of Node receives the duration
 */
export const seconds = (most = LONGEST_S) =>
  kind(`a number of seconds such as 30, at most ${most}`, (text) => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    return value <= most ? value : undefined;
  });

const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/** A size in bytes: `8388608` or `8MiB`. */
export const bytes = () =>
  kind('a number of bytes, such as 8388608 or 8MiB', (text) => {
    const match = /^(\d+) ?(KiB|MiB|GiB)?$/.exec(text);
    const size = match ? Number(match[1]) * (UNITS[match[2] ?? ''] ?? 1) : Number.NaN;
    return Number.isSafeInteger(size) ? size : undefined;
  });

/** `true` or `false`. */
export const flag = () =>
  kind('true or false', (text) => (text === 'true' ? true : text === 'false' ? false : undefined));

/** Words separated by commas. */
export const list = () =>
  kind('a list separated by commas', (text): readonly string[] | undefined =>
    text
      .split(',')
      .map((word) => word.trim())
      .filter(Boolean),
  );

/** Any text. */
export const text = (expected = 'a text') => z.string({ error: `expected ${expected}` });

/** A text that no message and no log may show. */
export const secret = (expected = 'a secret', shortest = 1) =>
  kind(expected, (value) => (value.length >= shortest ? value : undefined)).meta({ secret: true });

// A URL with a user needs a host: `redis+unix://user:password@localhost/path`.
const REDIS_URL = /^(redis(s)?:\/\/[^/]+|redis\+unix:\/\/([^/@]+@localhost)?\/.+)/;

/** The URL of Redis. It is a secret, because it may contain a password. */
export const redisUrl = () =>
  kind('redis://host:port, rediss://host:port (TLS) or redis+unix:///path of a socket', (value) =>
    REDIS_URL.test(value) && URL.canParse(value) ? value : undefined,
  ).meta({ secret: true });

/** The URL of a span collector. It is a secret, because it may contain a password. */
const collector = () =>
  kind('http://host:port or https://host:port', (value) =>
    /^https?:\/\/[^/]/.test(value) && URL.canParse(value) ? value : undefined,
  ).meta({ secret: true });

/** Headers of the collector's requests, percent-encoded as in W3C baggage. A secret, because a header may contain a key. */
const headers = () =>
  kind('headers such as x-api-key=1234,x-team=mine', (value): Readonly<Record<string, string>> | undefined => {
    try {
      return Object.fromEntries(value.split(',').map(headerPair));
    } catch {
      return undefined;
    }
  }).meta({ secret: true });

const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;

function headerPair(text: string): [string, string] {
  const mark = text.indexOf('=');
  const name = text.slice(0, mark).trim();
  const value = text.slice(mark + 1).trim();
  if (mark === -1 || !HEADER_NAME.test(name) || !HEADER_VALUE.test(value)) throw new Error('expected name=value');
  return [name, decodeURIComponent(value)];
}

/** A number from 0 to 1. */
export const fraction = () =>
  kind('a fraction from 0 to 1, such as 0.1', (text) => {
    const value = /^\d(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    return value <= 1 ? value : undefined;
  });

/** The operations port of a service. Each service has another default. */
export const operationsPort = (usual: string) =>
  port().prefault(usual).describe('port of /healthz, /readyz and /metrics; 0 lets the system choose');

/** A duration in seconds for a part of a stop. */
const upToADay = () => seconds(86_400);

/** The settings of every service, except `OPERATIONS_PORT`. */
export const commonSettings = {
  NODE_ENV: z
    .enum(['development', 'production', 'test'], { error: 'expected development, production or test' })
    .default('production')
    .describe('development prints logs for people'),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace'], {
      error: 'expected fatal, error, warn, info, debug or trace',
    })
    .default('info')
    .describe('the least severe log lines that are written'),
  REDIS_URL: redisUrl().describe(
    'the Redis: redis://user:password@host:port, rediss:// (TLS) or redis+unix://user:password@localhost/path',
  ),
  SHUTDOWN_DELAY_S: upToADay()
    .prefault('0')
    .describe('how long a stopping service still serves while it reports not ready, so that balancers notice'),
  SHUTDOWN_GRACE_S: upToADay()
    .prefault('10')
    .describe('how long runs and requests may continue after SHUTDOWN_DELAY_S before they are ended'),
  OPERATIONS_HOST: text('an address to listen on')
    .prefault('127.0.0.1')
    .describe('address of the operations port; 0.0.0.0 in containers, in a private network'),
  OTEL_EXPORTER_OTLP_ENDPOINT: collector()
    .optional()
    .describe(
      'collector of OpenTelemetry spans (OTLP over HTTP), such as http://127.0.0.1:4318; without it no spans are sent',
    ),
  OTEL_EXPORTER_OTLP_HEADERS: headers()
    .optional()
    .describe('headers for the collector, such as its key: name=value, several separated by commas'),
  OTEL_TRACES_SAMPLER_ARG: fraction()
    .prefault('1')
    .describe('traced fraction of the calls whose caller made no sampling decision'),
};
