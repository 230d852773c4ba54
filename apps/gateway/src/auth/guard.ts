// Contract 1: who may do what with a project. Runs before a byte of the body is read.
import { ServiceError } from '@inference-proxy/contracts';
import { GatewayStore } from '@inference-proxy/store';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { headerCount } from '../http/header-count.ts';
import { type Grant, Tokens } from './tokens.ts';

/** RFC 9110 §11.1: the scheme's name in any case. */
const BEARER = /^bearer +([^\s]+)$/i;

type ProjectRequest = FastifyRequest<{ Params: { project: string } }>;

/** What a token without `scope` may do (contract 6). Every other scope has to be named. */
const USUAL_SCOPES: ReadonlySet<string> = new Set(['call', 'runs:read', 'runs:write']);

const grants = new WeakMap<object, Grant>();

/** The grant of a request that `WriteTokensGuard` has admitted. */
export const grantOf = (request: object): Grant => grants.get(request) as Grant;

/** A token of the path's project, whatever its scope. */
@Injectable()
export class ProjectGuard implements CanActivate {
  protected readonly scope: string | undefined = undefined;

  constructor(
    private readonly tokens: Tokens,
    private readonly store: GatewayStore,
  ) {}

  /** A promise only where the token's key has to be fetched: waiting for one that is there would cost every call a turn of the loop. */
  canActivate(context: ExecutionContext): true | Promise<true> {
    const request = context.getArgByIndex<ProjectRequest>(0);
    const grant = this.tokens.verify(bearerToken(request));
    const { revocations } = this.store;
    if (!(grant instanceof Promise) && revocations.known) return this.#admit(request, grant);
    return Promise.all([grant, revocations.ready()]).then(([found]) => this.#admit(request, found));
  }

  /** For guards whose handlers need the grant. */
  protected admitted(_request: object, _grant: Grant): void {}

  #admit(request: ProjectRequest, grant: Grant): true {
    const { project } = request.params;
    const { projects, scopes = USUAL_SCOPES, identity } = grant;
    if (this.store.revocations.covers(project, identity)) {
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
  // Node keeps the first of several; what stands in front of us may have checked the last.
  if (headerCount(raw.rawHeaders, 'authorization') !== 1) {
    throw new ServiceError('unauthorized', 'Expected one `Authorization` header.');
  }
  return token;
}
