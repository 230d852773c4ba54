// Contract 4, "Allowed addresses": reads `webhookEndpoint` from the query (Contract 1, "Options of a call") and checks the URL before the run starts.
import { isIP } from 'node:net';
import { ServiceError } from '@inference-proxy/contracts';
import { type AddressPolicy, ALLOW_HINT } from './address-policy.ts';

export interface WebhookRules {
  readonly policy: AddressPolicy;
  readonly requireHttps?: boolean;
}

/** Checking a URL costs 30 µs in the gateway and again in the dispatcher; a look-up costs almost nothing. Callers have few receivers. */
const REMEMBERED = 1000;
/** A longer text is checked each time. */
const REMEMBERED_LENGTH = 1024;

/** Checks webhook URLs by the rules of this process and remembers accepted URLs. Rejected URLs are checked each time. */
export class WebhookUrls {
  readonly #rules: WebhookRules;
  readonly #asked = new Map<string, string | undefined>();
  readonly #judged = new Map<string, string>();

  constructor(rules: WebhookRules) {
    this.#rules = rules;
  }

  /**
   * Returns the checked webhook URL of a call, or nothing if the call has no webhook.
   *
   * @param rawQuery the undecoded text after the `?` of the request's target
   * @throws ServiceError `invalid_request`
   */
  asked(rawQuery: string): string | undefined {
    return remembered(this.#asked, rawQuery, () => {
      const endpoint = webhookEndpointOf(rawQuery);
      return endpoint === undefined ? undefined : judgeWebhookUrl(endpoint, this.#rules);
    });
  }

  /** Does the same as `judgeWebhookUrl` with these rules. @throws ServiceError `invalid_request` */
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
/** Bounds the bytes that are stored with each run. Browsers and proxies have similar limits. */
export const MAX_WEBHOOK_URL_BYTES = 8192;
/** RFC 1035 §2.3.4: a longer name cannot be resolved. One character is added for a final dot. */
const MAX_HOST_LENGTH = 254;

/** The bad ports of the fetch standard (§2.9 "Port blocking"): other services that might accept an HTTP request by mistake. */
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
 * Returns the value of `webhookEndpoint` in a raw query string, percent-decoded (`+` is a space, as in forms). Returns nothing if it is absent.
 *
 * @param rawQuery the undecoded text after the `?` of the request's target
 * @throws ServiceError `invalid_request` if the parameter is repeated, empty or not percent-encoded UTF-8
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
 * Checks a webhook's URL without a name lookup. Each attempt of the delivery resolves the name and checks its addresses.
 *
 * @param text the decoded value of the parameter
 * @returns the URL in WHATWG's form, without the fragment, which is never sent
 * @throws ServiceError `invalid_request` that names the rule which the URL breaks
 */
export function judgeWebhookUrl(text: string, { policy, requireHttps = false }: WebhookRules): string {
  if (Buffer.byteLength(text) > MAX_WEBHOOK_URL_BYTES) refuse(`is longer than ${MAX_WEBHOOK_URL_BYTES} bytes`);
  // The URL parser would silently drop or encode these characters. The caller then meant another URL, or sent this URL unencoded.
  if (/[\p{Cc}\p{Z}]/u.test(text)) refuse('holds a space or a control character; URL-encode it');
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) refuse('must be an absolute URL such as https://example.com/hook');
  const url = URL.parse(text) ?? refuse('is not a valid URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') refuse('must be an http or https URL');
  if (requireHttps && url.protocol !== 'https:') refuse('must be an https URL');
  if (url.username !== '' || url.password !== '') refuse('must not hold credentials');
  // The parser would read the next path segment as the host.
  if (/^[^:]+:\/\/[/\\]/.test(text)) refuse('has no usable host');
  if (/^$|^\.|\.\./.test(url.hostname) || url.hostname.length > MAX_HOST_LENGTH) refuse('has no usable host');
  if (url.port !== '' && BAD_PORTS.has(Number(url.port))) refuse(`must not use port ${url.port}`);
  const literal = literalAddress(url.hostname);
  const why = literal && policy.refusal(literal);
  if (why) refuse(`must be a public address; ${literal} is ${why}. ${ALLOW_HINT}`);
  url.hash = '';
  return url.href.length > MAX_WEBHOOK_URL_BYTES ? refuse(`is longer than ${MAX_WEBHOOK_URL_BYTES} bytes`) : url.href;
}

/** Returns the address of a host that needs no lookup: a literal address, or `localhost` (RFC 6761 §6.3). */
function literalAddress(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) !== 0) return bare;
  return /(^|\.)localhost\.?$/.test(hostname) ? '127.0.0.1' : undefined;
}
