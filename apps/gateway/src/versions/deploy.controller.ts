// Contract 7: the routes that change apps, and the audit log of these changes. All need the scope `apps:write`.
import { ServiceError } from '@inference-proxy/contracts';
import { Controller, Delete, Get, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { grantOf, WriteAppsGuard } from '../auth/tokens.ts';
import { send } from '../http/answer.ts';
import { checkProject } from '../http/not-found.ts';
import { readQuery } from '../http/query.ts';
import { Query } from '../http/request-head.ts';
import { paging } from '../http/values.ts';
import { Audit, type AuditAction } from './audit.ts';
import { Uploads } from './uploads.ts';
import { type Author, checkNames, type VersionPath, Versions } from './versions.ts';

const GZIP = /^application\/(x-)?gzip$/i;
const SHOWN_DIGITS = 12;

const deployQuery = z.object({
  activate: z.enum(['true', 'false'], 'must be `true` or `false`').default('true'),
});
const auditQuery = z.object(paging);

type AppRequest = FastifyRequest<{ Params: Pick<VersionPath, 'project' | 'app'> }>;

@Controller('v4/:project')
@UseGuards(WriteAppsGuard)
export class DeployController {
  readonly #uploads: Uploads;
  readonly #versions: Versions;
  readonly #audit: Audit;

  constructor(uploads: Uploads, versions: Versions, audit: Audit) {
    this.#uploads = uploads;
    this.#versions = versions;
    this.#audit = audit;
  }

  /** The reply is hijacked first, because the body is read as it arrives. */
  @Post('apps/:app/versions')
  async deploy(@Req() request: AppRequest, @Res() reply: FastifyReply): Promise<void> {
    const { raw } = reply.hijack();
    const { project, app } = request.params;
    checkNames(project, app);
    const { activate } = readQuery(deployQuery, Query.of(request.url), 'refused');
    const [type = ''] = (request.headers['content-type'] ?? '').split(';', 1);
    if (!GZIP.test(type.trim()))
      throw new ServiceError('unsupported_media_type', 'Expected `Content-Type: application/gzip` and a .tar.gz.');
    const upload = await this.#uploads.receive(raw);
    const { status, body } = await this.#versions.deploy({ project, app }, upload, {
      ...authorOf(request),
      activate: activate === 'true',
    });
    await this.#record(request, project, 'version.deploy', targetOf(app, body.version));
    answer(request, raw, status, body);
  }

  @Post('apps/:app/versions/:version/activate')
  async activate(@Req() request: FastifyRequest<{ Params: VersionPath }>, @Res() reply: FastifyReply): Promise<void> {
    const { project, app } = request.params;
    const body = await this.#versions.activate(request.params, authorOf(request));
    await this.#record(request, project, 'version.activate', targetOf(app, body.version));
    answer(request, reply.hijack().raw, 202, body);
  }

  @Delete('apps/:app')
  async delete(@Req() request: AppRequest, @Res() reply: FastifyReply): Promise<void> {
    const { project, app } = request.params;
    await this.#versions.delete({ project, app });
    await this.#record(request, project, 'app.delete', app);
    answer(request, reply.hijack().raw, 202, { app });
  }

  @Get('audit')
  async audit(
    @Req() request: FastifyRequest<{ Params: Pick<VersionPath, 'project'> }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { project } = request.params;
    checkProject(project);
    const { limit, cursor } = readQuery(auditQuery, Query.of(request.url), 'refused');
    answer(request, reply.hijack().raw, 200, await this.#audit.page(project, limit, cursor));
  }

  #record(request: FastifyRequest, project: string, action: AuditAction, target: string): Promise<void> {
    return this.#audit.record(request.raw, { project, sub: grantOf(request).identity.sub, action, target });
  }
}

function authorOf(request: FastifyRequest): Author {
  const { sub } = grantOf(request).identity;
  return sub === undefined ? {} : { author: sub };
}

const targetOf = (app: string, version: string): string => `${app}@${version.slice(0, SHOWN_DIGITS)}`;

function answer(request: FastifyRequest, raw: FastifyReply['raw'], status: number, body: object): void {
  send(raw, request.id, status, Buffer.from(JSON.stringify(body)), { 'cache-control': 'no-store' });
}
