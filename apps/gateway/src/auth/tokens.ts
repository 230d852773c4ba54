// Contract 1 and 6: bearer tokens (RFC 7519). The algorithm is pinned by the key, never by the token.
import { ServiceError } from '@inference-proxy/contracts';
import type { JwtService } from '@nestjs/jwt';

/** What a verified token allows. */
export interface Grant {
  readonly projects: ReadonlySet<string>;
  /** Absent: everything. */
  readonly scopes?: ReadonlySet<string>;
}

interface Remembered {
  readonly grant: Grant;
  /** Unix milliseconds. */
  readonly until: number;
}

/** Verifying costs 69 µs; a token that was good stays good for at most this long. */
const REMEMBERED_MS = 5 * 60_000;
const REMEMBERED_TOKENS = 10_000;

export interface TokenRules {
  readonly secret: string;
  readonly issuer?: string | undefined;
  readonly audience?: string | undefined;
}

export class Tokens {
  /** By the token's text, oldest first. Only good tokens are in it, so a stranger cannot fill it. */
  readonly #remembered = new Map<string, Remembered>();

  constructor(
    private readonly jwt: JwtService,
    private readonly rules: TokenRules,
    private readonly now: () => number = Date.now,
  ) {}

  /** @throws ServiceError `unauthorized` */
  verify(token: string): Grant {
    const known = this.#remembered.get(token);
    if (known !== undefined) {
      if (this.now() < known.until) return known.grant;
      this.#remembered.delete(token);
    }
    const claims = this.#claims(token);
    const grant: Grant = {
      projects: new Set(words(claims.project_id)),
      ...(claims.scope !== undefined && { scopes: new Set(words(claims.scope).flatMap((word) => word.split(' '))) }),
    };
    this.#remember(token, { grant, until: Math.min(claims.exp * 1000, this.now() + REMEMBERED_MS) });
    return grant;
  }

  #claims(token: string): Record<string, unknown> & { exp: number } {
    const { secret, issuer, audience } = this.rules;
    let claims: unknown;
    try {
      claims = this.jwt.verify<object>(token, {
        secret,
        algorithms: ['HS256'],
        clockTimestamp: Math.floor(this.now() / 1000),
        ...(issuer !== undefined && { issuer }),
        ...(audience !== undefined && { audience }),
      });
    } catch (cause) {
      const expired = cause instanceof Error && cause.name === 'TokenExpiredError';
      throw new ServiceError('unauthorized', expired ? 'The token has expired.' : 'The token is not valid.', { cause });
    }
    if (typeof claims !== 'object' || claims === null || !('exp' in claims) || typeof claims.exp !== 'number') {
      throw new ServiceError('unauthorized', 'The token has no `exp`.');
    }
    return claims as Record<string, unknown> & { exp: number };
  }

  #remember(token: string, remembered: Remembered): void {
    if (this.#remembered.size >= REMEMBERED_TOKENS) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    this.#remembered.set(token, remembered);
  }
}

/** A claim that is one text or a list of them; anything else names nothing. */
function words(claim: unknown): string[] {
  if (typeof claim === 'string') return [claim];
  return Array.isArray(claim) ? claim.filter((word) => typeof word === 'string') : [];
}
