// Contract 1, "Authentication": checks the token of a request before a byte of the body is read.
import { ServiceError } from '@inference-proxy/contracts';
import { GatewayStore } from '@inference-proxy/store';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { headerCount } from '../http/once.ts';
import { type Grant, Tokens } from './tokens.ts';

/** The scheme's name is accepted in any case (RFC 9110 §11.1). */
const BEARER = /^bearer +([^\s]+)$/i;

type ProjectRequest = FastifyRequest<{ Params: { project: string } }>;

/** The scopes of a token without `scope` (contract 6). A token must name every other scope. */
const USUAL_SCOPES: ReadonlySet<string> = new Set(['call', 'runs:read', 'runs:write']);

const grants = new WeakMap<object, Grant>();

/** Returns the grant of a request that `WriteTokensGuard` has admitted. */
export const grantOf = (request: object): Grant => grants.get(request) as Grant;

/** Admits a token of the path's project with any scope. */
@Injectable()
export class ProjectGuard implements CanActivate {
  protected readonly scope: string | undefined = undefined;

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
    if (this.scope !== undefined && !scopes.has(this.scope)) {
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
