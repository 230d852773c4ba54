// Contract 7: the routes that read apps and versions.
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { sendCurrent } from '../http/current-answer.ts';
import { Apps } from './apps.ts';
import { VersionLogs } from './version-log.ts';
import { type VersionPath, Versions } from './versions.ts';

@Controller('v4/:project/apps')
@UseGuards(ReadRunsGuard)
export class AppsController {
  readonly #apps: Apps;
  readonly #versions: Versions;
  readonly #logs: VersionLogs;

  constructor(apps: Apps, versions: Versions, logs: VersionLogs) {
    this.#apps = apps;
    this.#versions = versions;
    this.#logs = logs;
  }

  @Get()
  async list(
    @Req() request: FastifyRequest<{ Params: Pick<VersionPath, 'project'> }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendCurrent(request, reply, await this.#apps.list(request.params.project));
  }

  @Get(':app')
  async one(
    @Req() request: FastifyRequest<{ Params: Pick<VersionPath, 'project' | 'app'> }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendCurrent(request, reply, await this.#apps.one(request.params.project, request.params.app));
  }

  @Get(':app/versions/:version')
  async version(@Req() request: FastifyRequest<{ Params: VersionPath }>, @Res() reply: FastifyReply): Promise<void> {
    sendCurrent(request, reply, await this.#versions.view(request.params));
  }

  /** Takes the raw request and reply, because a followed log is written while it grows. */
  @Get(':app/versions/:version/log')
  log(@Req() request: FastifyRequest<{ Params: VersionPath }>, @Res() reply: FastifyReply): Promise<void> {
    return this.#logs.answer(request, reply);
  }
}
