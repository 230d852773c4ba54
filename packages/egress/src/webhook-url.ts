// Contract 1 and webhooks.md "Address policy": the value of `webhookEndpoint`, out of the query and judged before anything runs.
import { isIP } from 'node:net';
import { ServiceError } from '@inference-proxy/contracts';
import { type AddressPolicy, ALLOW_HINT } from './address-policy.ts';

export interface WebhookRules {
  readonly policy: AddressPolicy;
  readonly requireHttps?: boolean;
}

/** Callers have few receivers: to judge a URL costs some 30 µs, in the gateway and again in the dispatcher, to know it again next to nothing. */
const REMEMBERED = 1000;
/** What is longer is judged each time. */
const REMEMBERED_LENGTH = 1024;

/** Webhooks' URLs by the rules of this process. What is refused is judged each time. */
export class WebhookUrls {
  readonly #rules: WebhookRules;
  readonly #asked = new Map<string, string | undefined>();
  readonly #judged = new Map<string, string>();

  constructor(rules: WebhookRules) {
    this.#rules = rules;
  }

  /**
   * The URL that a call asks for, judged; nothing where it asks for none.
   *
   * @param rawQuery what stands after the `?` of the request's target, undecoded
   * @throws ServiceError `invalid_request`
   */
  asked(rawQuery: string): string | undefined {
    return remembered(this.#asked, rawQuery, () => {
      const endpoint = webhookEndpointOf(rawQuery);
      return endpoint === undefined ? undefined : judgeWebhookUrl(endpoint, this.#rules);
    });
  }

  /** As `judgeWebhookUrl` by these rules. @throws ServiceError `invalid_request` */
  judge(text: string): string {
    return remembered(this.#judged, text, () => judgeWebhookUrl(text, this.#rules));
  }
}

function remembered<Value>(known: Map<string, Value>, text: string, value: () => Value): Value {
  if (known.has(text)) return known.get(text) as Value;
  const found = value();
  if (known.size >= REMEMBERED) known.clear();
  if (text.length <= REMEMBERED_LENGTH) known.set(text, found);
  return found;
}

const PARAMETER = 'webhookEndpoint';
/** Bounds what is stored with each run; browsers and proxies stop at about this length too. */
export const MAX_WEBHOOK_URL_BYTES = 8192;
/** RFC 1035 §2.3.4: a longer name cannot be resolved. One more for a final dot. */
const MAX_HOST_LENGTH = 254;

/** The fetch standard's bad ports (§2.9 "Port blocking"): services that an HTTP request could be made to talk to by mistake. */
const BAD_PORTS: ReadonlySet<number> = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

const refuse = (why: string): never => {
  throw new ServiceError('invalid_request', `${PARAMETER} ${why}`);
};

/**
 * The value of `webhookEndpoint` in a raw query string, percent-decoded (`+` is a space, as in forms); nothing where it is not given.
 *
 * @param rawQuery what stands after the `?` of the request's target, undecoded
 * @throws ServiceError `invalid_request` where it is doubled, empty, or no UTF-8 in percent-encoding
 */
export function webhookEndpointOf(rawQuery: string): string | undefined {
  const values = rawQuery
    .split('&')
    .map((pair) => /^([^=]*)=?(.*)$/s.exec(pair) ?? ['', '', ''])
    .filter(([, name = '']) => formDecoded(name) === PARAMETER)
    .map(([, , value = '']) => value);
  const [value] = values;
  if (value === undefined) return undefined;
  if (values.length > 1) refuse('is given more than once');
  const decoded = formDecoded(value) ?? refuse('is not percent-encoded UTF-8');
  return decoded === '' ? refuse('is empty') : decoded;
}

function formDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/**
 * Judges a webhook's URL as far as a call can: names are resolved, and judged again, at each attempt.
 *
 * @param text the parameter's value, decoded
 * @returns the URL as WHATWG writes it, without its fragment (which is never sent)
 * @throws ServiceError `invalid_request` that says what is wrong with it
 */
export function judgeWebhookUrl(text: string, { policy, requireHttps = false }: WebhookRules): string {
  if (Buffer.byteLength(text) > MAX_WEBHOOK_URL_BYTES) refuse(`is longer than ${MAX_WEBHOOK_URL_BYTES} bytes`);
  // The URL parser would drop or encode these without a word: the caller meant another URL, or sent it unencoded.
  if (/[\p{Cc}\p{Z}]/u.test(text)) refuse('holds a space or a control character; URL-encode it');
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) refuse('must be an absolute URL such as https://example.com/hook');
  const url = URL.parse(text) ?? refuse('is not a valid URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') refuse('must be an http or https URL');
  if (requireHttps && url.protocol !== 'https:') refuse('must be an https URL');
  if (url.username !== '' || url.password !== '') refuse('must not hold credentials');
  // The parser would take the next segment for the host.
  if (/^[^:]+:\/\/[/\\]/.test(text)) refuse('has no usable host');
  if (/^$|^\.|\.\./.test(url.hostname) || url.hostname.length > MAX_HOST_LENGTH) refuse('has no usable host');
  if (url.port !== '' && BAD_PORTS.has(Number(url.port))) refuse(`must not use port ${url.port}`);
  const literal = literalAddress(url.hostname);
  const why = literal && policy.refusal(literal);
  if (why) refuse(`must be a public address; ${literal} is ${why}. ${ALLOW_HINT}`);
  url.hash = '';
  return url.href.length > MAX_WEBHOOK_URL_BYTES ? refuse(`is longer than ${MAX_WEBHOOK_URL_BYTES} bytes`) : url.href;
}

/** The address that a URL's host is without asking anybody: a literal, or `localhost` (RFC 6761 §6.3). */
function literalAddress(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) !== 0) return bare;
  return /(^|\.)localhost\.?$/.test(hostname) ? '127.0.0.1' : undefined;
}
