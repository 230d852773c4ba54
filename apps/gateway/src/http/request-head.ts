// Contract 1, 3 and 5: reads the head of a request. A header or query parameter that is doubled or malformed returns 400. Pure.
import type { IncomingHttpHeaders } from 'node:http';
import { ServiceError } from '@inference-proxy/contracts';

/** The head of a request, as Node parses it. */
export interface RequestHead {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Names and values as received: Node joins or drops repeated headers. */
  readonly rawHeaders: readonly string[];
}

/** The parameters of a path that names a function. */
export interface CallPath {
  readonly project: string;
  readonly app: string;
  readonly function: string;
}

/** The parameters of a path that names a run. */
export interface RunPath {
  readonly project: string;
  readonly run: string;
}

/** Returns whether a request has a body (RFC 9112 §6.3). */
export const hasBody = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;

/**
 * Returns whether a list with q-values (RFC 9110 §12.4.2) contains a name of `wanted` with a q above zero.
 * If several names of `wanted` are listed, the first of them in `wanted` decides.
 *
 * @param wanted in lower case, without parameters
 */
export function accepts(list: string | undefined, wanted: readonly string[]): boolean {
  if (list === undefined) return false;
  const lower = list.toLowerCase();
  if (!wanted.some((name) => lower.includes(name))) return false;
  const listed = new Map<string, boolean>();
  for (const element of lower.split(',')) {
    const [name = '', ...parameters] = element.split(';').map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    listed.set(name, (listed.get(name) ?? false) || q === undefined || Number(q) > 0);
  }
  const decisive = wanted.find((name) => listed.has(name));
  return decisive !== undefined && listed.get(decisive) === true;
}

/** Returns the error for a value that cannot be accepted. @param why continues the sentence that begins with the name */
export const refused = (name: string, why: string): ServiceError =>
  new ServiceError('invalid_request', `\`${name}\` ${why}.`);

const doubled = (name: string): ServiceError => refused(name, 'is given more than once');

const isNamed = (header: string | undefined, lower: string): boolean =>
  header?.length === lower.length && header.toLowerCase() === lower;

/**
 * Returns how often the header occurs. Node keeps the first of some repeated headers and joins others (RFC 9110 §5.3).
 * Node's own list of all headers (`headersDistinct`) takes 2 µs.
 *
 * @param rawHeaders names and values as received
 * @param lower the name in lower case
 */
export function headerCount(rawHeaders: readonly string[], lower: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (isNamed(rawHeaders[at], lower)) count += 1;
  return count;
}

/**
 * Returns the value of a header, or undefined if the request lacks the header.
 *
 * @param rawHeaders names and values as received
 * @throws ServiceError `invalid_request` if the header is given more than once
 */
export function headerOnce(rawHeaders: readonly string[], name: string): string | undefined {
  const lower = name.toLowerCase();
  if (headerCount(rawHeaders, lower) > 1) throw doubled(name);
  const at = rawHeaders.findIndex((header, index) => index % 2 === 0 && isNamed(header, lower));
  return at === -1 ? undefined : rawHeaders[at + 1];
}

/** Does the same as `headerOnce`, and rejects an empty value. @throws ServiceError `invalid_request` */
export function textHeaderOnce(rawHeaders: readonly string[], name: string): string | undefined {
  const value = headerOnce(rawHeaders, name);
  if (value?.trim() === '') throw refused(name, 'is empty');
  return value;
}

/** The query of a request. It is decoded once, and only if a parameter is read that the query may contain. */
export class Query {
  #parameters: URLSearchParams | undefined;

  /** @param text the text after the `?`, undecoded */
  constructor(readonly text: string) {}

  /** Returns the query of a request's target. */
  static of(url = ''): Query {
    const mark = url.indexOf('?');
    return new Query(mark === -1 ? '' : url.slice(mark + 1));
  }

  /** Returns the names of all parameters, in the caller's order. */
  names(): string[] {
    return this.text === '' ? [] : [...this.#decoded().keys()];
  }

  /** Returns the value of a parameter, or undefined. @throws ServiceError `invalid_request` if it is given more than once */
  once(name: string): string | undefined {
    // A name may be percent-encoded.
    if (!this.text.includes(name) && !this.text.includes('%')) return undefined;
    const [value, ...more] = this.#decoded().getAll(name);
    if (more.length > 0) throw doubled(name);
    return value;
  }

  /** Returns the value of a parameter that accepts certain words only. @throws ServiceError `invalid_request` */
  word<Word extends string>(name: string, words: readonly Word[]): Word | undefined {
    const value = this.once(name);
    if (value === undefined) return undefined;
    const word = words.find((each) => each === value);
    if (word === undefined) throw refused(name, `must be ${words.map((each) => `\`${each}\``).join(' or ')}`);
    return word;
  }

  /** Returns whether a parameter is `true`. Without the parameter, the result is false. @throws ServiceError `invalid_request` */
  flag(name: string): boolean {
    return this.word(name, ['true', 'false']) === 'true';
  }

  #decoded(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.text);
    return this.#parameters;
  }
}
