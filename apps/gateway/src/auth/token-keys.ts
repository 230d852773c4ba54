// Contract 6: the keys that verify tokens. A key's type decides its algorithms (RFC 8725 §3.1); the token does not.
import { createPublicKey, type KeyObject } from 'node:crypto';
import type { TokenHeader } from './token-text.ts';

export type Algorithm = 'HS256' | 'RS256' | 'PS256' | 'ES256';

/** One key. A public key is a PEM text. */
export type TokenKey = {
  readonly algorithms: readonly Algorithm[];
  /** Restricts the key to tokens for this project. */
  readonly project?: string;
} & ({ readonly secret: string } | { readonly publicKey: string });

/** The keys that may have signed a token, and how long their verification is trusted. */
export interface Candidates {
  readonly keys: readonly TokenKey[];
  /** Unix ms; `Infinity` for a key that only a restart withdraws. */
  readonly until: number;
}

export interface TokenKeys {
  /** Returns the keys. @throws ServiceError `unauthorized` if no key fits, `unavailable` if the keys cannot be fetched now */
  candidates(header: TokenHeader): Candidates | Promise<Candidates>;
  /** Renews keys before they are too old. Called at every request; costs nothing if no key is due. Absent if no key can become too old. */
  renew?(): void;
}

/** RFC 7518 §3.3. */
const LEAST_RSA_BITS = 2048;

/** A key that is known from the start. */
export class FixedKey implements TokenKeys {
  readonly #candidates: Candidates;

  constructor(key: TokenKey) {
    this.#candidates = { keys: [key], until: Number.POSITIVE_INFINITY };
  }

  candidates(): Candidates {
    return this.#candidates;
  }
}

/** Returns the key of `JWT_SECRET`. */
export const secretKey = (secret: string): TokenKey => ({ secret, algorithms: ['HS256'] });

/** Returns a public key with its algorithms. Returns undefined if the key has another type or is too weak. */
export function publicKey(key: KeyObject): TokenKey | undefined {
  const algorithms = algorithmsOf(key);
  return algorithms && { publicKey: key.export({ type: 'spki', format: 'pem' }).toString(), algorithms };
}

/**
 * Reads `JWT_PUBLIC_KEY`: a PEM of a public key or a certificate.
 * `\n` may replace its line breaks, because some environment files cannot contain line breaks.
 *
 * @throws Error with the expected form
 */
export function publicKeyOfPem(text: string): TokenKey {
  const pem = text.replaceAll('\\n', '\n');
  if (/PRIVATE KEY/.test(pem)) throw new Error('expected a public key, got a private key: remove it from the settings');
  let parsed: KeyObject;
  try {
    parsed = createPublicKey(pem);
  } catch {
    throw new Error('expected a public key or a certificate as PEM');
  }
  const key = publicKey(parsed);
  if (key === undefined)
    throw new Error(`expected an RSA key of at least ${LEAST_RSA_BITS} bits or an EC key on P-256`);
  return key;
}

function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly Algorithm[] | undefined {
  const strong = (asymmetricKeyDetails?.modulusLength ?? 0) >= LEAST_RSA_BITS;
  if (asymmetricKeyType === 'rsa' && strong) return ['RS256', 'PS256'];
  if (asymmetricKeyType === 'rsa-pss' && strong) return ['PS256'];
  if (asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1') return ['ES256'];
  return undefined;
}
