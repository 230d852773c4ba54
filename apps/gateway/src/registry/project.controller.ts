// Contract 1: the route `GET /v4/{project}`.
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { sendCurrent } from '../http/current-answer.ts';
import { ProjectApps } from './project.ts';

@Controller('v4')
@UseGuards(ReadRunsGuard)
export class ProjectController {
  readonly #apps: ProjectApps;

  constructor(apps: ProjectApps) {
    this.#apps = apps;
  }

  @Get(':project')
  async list(
    @Req() request: FastifyRequest<{ Params: { project: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendCurrent(request, reply, await this.#apps.list(request.params.project));
  }
}
