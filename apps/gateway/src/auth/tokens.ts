// Contract 1 and 6: bearer tokens (RFC 7519). The key fixes the algorithm; the token does not.
import { hash } from 'node:crypto';
import { ServiceError } from '@inference-proxy/contracts';
import type { TokenIdentity } from '@inference-proxy/store';
import type { JwtService } from '@nestjs/jwt';
import type { Candidates, TokenKey, TokenKeys } from './token-keys.ts';
import { notValid, tokenHeader } from './token-text.ts';

/** What a verified token allows. */
export interface Grant {
  readonly projects: ReadonlySet<string>;
  /** Absent if the token names no scope. */
  readonly scopes?: ReadonlySet<string>;
  /** The claims by which the token can be revoked. */
  readonly identity: TokenIdentity;
}

interface Remembered {
  readonly grant: Grant;
  /** Unix milliseconds. */
  readonly until: number;
}

type Claims = Record<string, unknown> & { exp: number };

/** Verification costs 69 µs. A valid token is remembered for at most this time. */
const REMEMBERED_MS = 5 * 60_000;
const REMEMBERED_TOKENS = 10_000;

export interface TokenRules {
  readonly issuer?: string | undefined;
  readonly audience?: string | undefined;
}

export class Tokens {
  /**
   * Grants by the token's SHA-256, oldest first: 1.5 µs a call. A dump of this process' memory contains no usable tokens.
   * Only valid tokens are remembered, so a stranger cannot fill the map.
   */
  readonly #remembered = new Map<string, Remembered>();

  readonly #jwt: JwtService;
  readonly #keys: TokenKeys;
  readonly #rules: TokenRules;
  readonly #now: () => number;

  constructor(jwt: JwtService, keys: TokenKeys, rules: TokenRules, now: () => number = Date.now) {
    this.#jwt = jwt;
    this.#keys = keys;
    this.#rules = rules;
    this.#now = now;
  }

  /** Verifies a token. @throws ServiceError `unauthorized`, or `unavailable` if the keys cannot be fetched */
  verify(token: string): Grant | Promise<Grant> {
    this.#keys.tend();
    const digest = hash('sha256', token, 'base64');
    const known = this.#remembered.get(digest);
    if (known !== undefined) {
      if (this.#now() < known.until) return known.grant;
      this.#remembered.delete(digest);
    }
    const candidates = this.#keys.candidates(tokenHeader(token));
    return candidates instanceof Promise
      ? candidates.then((found) => this.#verified(token, digest, found))
      : this.#verified(token, digest, candidates);
  }

  #verified(token: string, digest: string, { keys, until }: Candidates): Grant {
    const claims = this.#claims(token, keys);
    const grant: Grant = {
      projects: new Set(words(claims.project_id)),
      ...(claims.scope !== undefined && { scopes: new Set(words(claims.scope).flatMap((word) => word.split(' '))) }),
      identity: identityOf(claims),
    };
    this.#remember(digest, { grant, until: Math.min(claims.exp * 1000, this.#now() + REMEMBERED_MS, until) });
    return grant;
  }

  #claims(token: string, keys: readonly TokenKey[]): Claims {
    let failure: unknown;
    for (const key of keys) {
      try {
        return this.#claimsBy(key, token);
      } catch (error) {
        failure = error;
      }
    }
    if (failure instanceof ServiceError) throw failure;
    const expired = failure instanceof Error && failure.name === 'TokenExpiredError';
    throw expired ? new ServiceError('unauthorized', 'The token has expired.', { cause: failure }) : notValid(failure);
  }

  #claimsBy({ algorithms, project, ...key }: TokenKey, token: string): Claims {
    const { issuer, audience } = this.#rules;
    const claims: unknown = this.#jwt.verify<object>(token, {
      ...key,
      algorithms: [...algorithms],
      clockTimestamp: Math.floor(this.#now() / 1000),
      ...(issuer !== undefined && { issuer }),
      ...(audience !== undefined && { audience }),
    });
    // A number that is too large for a double is parsed as infinity.
    if (typeof claims !== 'object' || claims === null || !('exp' in claims) || !Number.isFinite(claims.exp)) {
      throw new ServiceError('unauthorized', 'The token has no `exp`.');
    }
    // A restricted key verifies no token that names another project or `*`, even beside the key's own project.
    if (project !== undefined && words((claims as Claims).project_id).some((named) => named !== project)) {
      throw new ServiceError('unauthorized', 'The key of this token signs for another project.');
    }
    return claims as Claims;
  }

  #remember(digest: string, remembered: Remembered): void {
    if (this.#remembered.size >= REMEMBERED_TOKENS) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    this.#remembered.set(digest, remembered);
  }
}

/** Returns the claims by which a token can be revoked. A claim of another type than RFC 7519 defines is left out. */
function identityOf({ jti, sub, iat }: Claims): TokenIdentity {
  return {
    ...(typeof jti === 'string' && { jti }),
    ...(typeof sub === 'string' && { sub }),
    ...(typeof iat === 'number' && { issuedAt: iat }),
  };
}

/** Returns the words of a claim that is a text or a list of texts. Other claims have no words. */
function words(claim: unknown): string[] {
  if (typeof claim === 'string') return [claim];
  return Array.isArray(claim) ? claim.filter((word) => typeof word === 'string') : [];
}
