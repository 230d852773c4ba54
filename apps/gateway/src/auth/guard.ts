// Contract 1: who may do what with a project. Runs before a byte of the body is read.
import { ServiceError } from '@inference-proxy/contracts';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Tokens } from './tokens.ts';

const BEARER = /^bearer +([^\s]+)$/i;

/** A token of the path's project, whatever its scope. */
@Injectable()
export class ProjectGuard implements CanActivate {
  protected readonly scope: string | undefined = undefined;

  constructor(private readonly tokens: Tokens) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.getArgByIndex<FastifyRequest<{ Params: { project: string } }>>(0);
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (token === undefined) throw new ServiceError('unauthorized', 'A bearer token is required.');
    const { projects, scopes } = this.tokens.verify(token);
    if (!projects.has(request.params.project) && !projects.has('*')) {
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
