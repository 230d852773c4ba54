// Contract 1: who may do what with a project. Runs before a byte of the body is read.
import { ServiceError } from '@inference-proxy/contracts';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { headerCount } from '../http/header-count.ts';
import { type Grant, Tokens } from './tokens.ts';

/** RFC 9110 §11.1: the scheme's name in any case. */
const BEARER = /^bearer +([^\s]+)$/i;

type ProjectRequest = FastifyRequest<{ Params: { project: string } }>;

/** A token of the path's project, whatever its scope. */
@Injectable()
export class ProjectGuard implements CanActivate {
  protected readonly scope: string | undefined = undefined;

  constructor(private readonly tokens: Tokens) {}

  /** A promise only where the token's key has to be fetched: waiting for one that is there would cost every call a turn of the loop. */
  canActivate(context: ExecutionContext): true | Promise<true> {
    const request = context.getArgByIndex<ProjectRequest>(0);
    const grant = this.tokens.verify(bearerToken(request));
    const { project } = request.params;
    return grant instanceof Promise ? grant.then((found) => this.#admit(project, found)) : this.#admit(project, grant);
  }

  #admit(project: string, { projects, scopes }: Grant): true {
    if (!projects.has(project) && !projects.has('*')) {
      throw new ServiceError('forbidden', 'The token is not for this project.');
    }
    if (this.scope !== undefined && scopes !== undefined && !scopes.has(this.scope)) {
      throw new ServiceError('forbidden', `The token lacks the scope \`${this.scope}\`.`);
    }
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

function bearerToken({ headers, raw }: ProjectRequest): string {
  const token = BEARER.exec(headers.authorization ?? '')?.[1];
  if (token === undefined) throw new ServiceError('unauthorized', 'A bearer token is required.');
  // Node keeps the first of several; what stands in front of us may have checked the last.
  if (headerCount(raw.rawHeaders, 'authorization') !== 1) {
    throw new ServiceError('unauthorized', 'Expected one `Authorization` header.');
  }
  return token;
}
