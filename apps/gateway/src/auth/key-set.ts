// Contract 6: the key set of an identity provider (RFC 7517). It is kept for a while, and fetched again if a token names a new key.
import { KeyObject } from 'node:crypto';
import { ServiceError } from '@inference-proxy/contracts';
import type { Logger } from '@inference-proxy/platform';
import { createRemoteJWKSet, customFetch, errors, type JWKSCacheInput, jwksCache } from 'jose';
import { type Candidates, publicKey, type TokenKey, type TokenKeys } from './token-keys.ts';
import { notValid, type TokenHeader } from './token-text.ts';

export interface KeySetTimes {
  /** How long a set is trusted, ms. A withdrawn key works for at most this time. */
  readonly maxAgeMs: number;
  /** Time after a fetch in which unknown keys cause no other fetch, ms. */
  readonly cooldownMs: number;
}

/** From this part of its age on, a set is renewed in the background. The provider may then be unreachable for the rest of the age. */
const RENEW_AT = 0.25;
/** Time for the provider's answer, and between two fetches. Strangers decide how many unknown keys arrive. */
const ANSWER_MS = 5000;
const PAUSE_MS = 1000;
const RENEW_PAUSE_MS = 5000;
const LARGEST_SET = 1024 * 1024;
const ALGORITHMS = new Set(['RS256', 'PS256', 'ES256']);

type PublicKey = Parameters<typeof KeyObject.from>[0];

class AskedBefore extends Error {}

export class KeySet implements TokenKeys {
  /** jose writes the set and its time into this object. */
  readonly #cache: { uat?: number } = {};
  readonly #remote: ReturnType<typeof createRemoteJWKSet>;
  #askedAt = Number.NEGATIVE_INFINITY;

  readonly #url: URL;
  readonly #times: KeySetTimes;
  readonly #logger: Logger;

  constructor(url: URL, times: KeySetTimes, logger: Logger) {
    this.#url = url;
    this.#times = times;
    this.#logger = logger;

    this.#remote = createRemoteJWKSet(url, {
      cacheMaxAge: times.maxAgeMs,
      cooldownDuration: times.cooldownMs,
      timeoutDuration: ANSWER_MS,
      [jwksCache]: this.#cache as JWKSCacheInput,
      [customFetch]: (href, options) => this.#fetch(href, options),
    });
  }

  async candidates({ alg, kid }: TokenHeader): Promise<Candidates> {
    if (!ALGORITHMS.has(alg)) throw notValid();
    // The time of the key's own set, or of an older set. A renewal meanwhile must not lengthen the life of a key that the new set lacks.
    const known = this.#remote.fresh ? this.#cache.uat : undefined;
    const keys = (await this.#cryptoKeys({ alg, ...(kid !== undefined && { kid }) })).map((key) =>
      publicKey(KeyObject.from(key)),
    );
    const since = known ?? this.#cache.uat ?? 0;
    return { keys: keys.filter((key): key is TokenKey => key !== undefined), until: since + this.#times.maxAgeMs };
  }

  renew(): void {
    const { uat } = this.#cache;
    const now = Date.now();
    if (uat === undefined || now < uat + this.#times.maxAgeMs * RENEW_AT || now < this.#askedAt + RENEW_PAUSE_MS)
      return;
    this.#remote.reload().catch((error: unknown) => this.#log(error));
  }

  async #cryptoKeys(header: { alg: string; kid?: string }): Promise<PublicKey[]> {
    try {
      return [await this.#remote(header)];
    } catch (error) {
      // Without a `kid`, several keys may fit.
      if (error instanceof errors.JWKSMultipleMatchingKeys) {
        const keys: PublicKey[] = [];
        for await (const key of error) keys.push(key);
        return keys;
      }
      if (error instanceof errors.JWKSNoMatchingKey) throw notValid(error);
      this.#log(error);
      throw new ServiceError('unavailable', 'The keys of the token’s issuer cannot be fetched now; call again.', {
        cause: error,
      });
    }
  }

  #log(err: unknown): void {
    // Each fetch logs one line at most, whatever the number of tokens.
    if (!(err instanceof AskedBefore))
      this.#logger.warn(
        { err, url: this.#url.href },
        'the key set could not be fetched; a later call fetches it again',
      );
  }

  async #fetch(href: string, options: RequestInit): Promise<Response> {
    const now = Date.now();
    if (now < this.#askedAt + Math.min(PAUSE_MS, this.#times.cooldownMs))
      throw new AskedBefore('the last fetch of the key set was a moment ago');
    this.#askedAt = now;
    const response = await fetch(href, options);
    let size = 0;
    const bounded = response.body?.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          size += chunk.length;
          if (size > LARGEST_SET) controller.error(new Error(`the key set is over ${LARGEST_SET} bytes`));
          else controller.enqueue(chunk);
        },
      }),
    );
    return new Response(bounded, { status: response.status });
  }
}

/** Reads `JWT_JWKS_URL`. @throws Error with the expected form */
export function keySetUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) throw new Error('expected an http or https URL');
  return url;
}
