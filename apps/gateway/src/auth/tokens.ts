// Contract 1, "Authentication", and contract 6: verifies the bearer token of a request (RFC 7519) before a byte of the body is read.
// The key fixes the algorithm; the token does not.
import { hash } from 'node:crypto';
import { ServiceError } from '@inference-proxy/contracts';
import type { TokenIdentity } from '@inference-proxy/store';
import { GatewayStore } from '@inference-proxy/store';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { JwtService } from '@nestjs/jwt';
import type { FastifyRequest } from 'fastify';
import { headerCount } from '../http/request-head.ts';
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
    this.#keys.renew?.();
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

/** The scheme's name is accepted in any case (RFC 9110 §11.1). */
const BEARER = /^bearer +([^\s]+)$/i;

type ProjectRequest = FastifyRequest<{ Params: { project: string } }>;

/** The scopes of a token without `scope` (contract 6). A token must name every other scope. */
const USUAL_SCOPES: ReadonlySet<string> = new Set(['call', 'runs:read', 'runs:write']);

const grants = new WeakMap<object, Grant>();

/** Returns the grant of a request that `WriteAppsGuard` or `WriteTokensGuard` has admitted. */
export const grantOf = (request: object): Grant => grants.get(request) as Grant;

/** Admits a token of the path's project with a scope. */
@Injectable()
export abstract class ProjectGuard implements CanActivate {
  protected abstract readonly scope: string;

  readonly #tokens: Tokens;
  readonly #store: GatewayStore;

  constructor(tokens: Tokens, store: GatewayStore) {
    this.#tokens = tokens;
    this.#store = store;
  }

  /** Returns a promise only if the token's key must be fetched. A promise for a known key would cost every call a turn of the event loop. */
  canActivate(context: ExecutionContext): true | Promise<true> {
    const request = context.getArgByIndex<ProjectRequest>(0);
    const grant = this.#tokens.verify(bearerToken(request));
    const { revocations } = this.#store;
    if (!(grant instanceof Promise) && revocations.known) return this.#admit(request, grant);
    return Promise.all([grant, revocations.ready()]).then(([found]) => this.#admit(request, found));
  }

  /** Called with the grant, for guards whose handlers need it. */
  protected admitted(_request: object, _grant: Grant): void {}

  #admit(request: ProjectRequest, grant: Grant): true {
    const { project } = request.params;
    const { projects, scopes = USUAL_SCOPES, identity } = grant;
    if (this.#store.revocations.covers(project, identity)) {
      throw new ServiceError('unauthorized', 'The token has been revoked.');
    }
    if (!projects.has(project) && !projects.has('*')) {
      throw new ServiceError('forbidden', 'The token is not for this project.');
    }
    if (!scopes.has(this.scope)) {
      throw new ServiceError('forbidden', `The token lacks the scope \`${this.scope}\`.`);
    }
    this.admitted(request, grant);
    return true;
  }
}

@Injectable()
export class CallGuard extends ProjectGuard {
  protected override readonly scope = 'call';
}

@Injectable()
export class ReadRunsGuard extends ProjectGuard {
  protected override readonly scope = 'runs:read';
}

@Injectable()
export class WriteRunsGuard extends ProjectGuard {
  protected override readonly scope = 'runs:write';
}

@Injectable()
export class WriteAppsGuard extends ProjectGuard {
  protected override readonly scope = 'apps:write';

  protected override admitted(request: object, grant: Grant): void {
    grants.set(request, grant);
  }
}

@Injectable()
export class WriteTokensGuard extends ProjectGuard {
  protected override readonly scope = 'tokens:write';

  protected override admitted(request: object, grant: Grant): void {
    grants.set(request, grant);
  }
}

function bearerToken({ headers, raw }: ProjectRequest): string {
  const token = BEARER.exec(headers.authorization ?? '')?.[1];
  if (token === undefined) throw new ServiceError('unauthorized', 'A bearer token is required.');
  // Node keeps the first of several headers. A proxy before the gateway may have checked the last.
  if (headerCount(raw.rawHeaders, 'authorization') !== 1) {
    throw new ServiceError('unauthorized', 'Expected one `Authorization` header.');
  }
  return token;
}
