// Contract 5, "Statistics": the route `GET /v4/{project}/stats`.
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { sendCurrent } from '../http/current-answer.ts';
import { Query } from '../http/request-head.ts';
import { CallStats } from './stats.ts';

@Controller('v4/:project/stats')
@UseGuards(ReadRunsGuard)
export class StatsController {
  readonly #stats: CallStats;

  constructor(stats: CallStats) {
    this.#stats = stats;
  }

  @Get()
  async read(
    @Req() request: FastifyRequest<{ Params: { project: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendCurrent(request, reply, await this.#stats.of(request.params.project, Query.of(request.url)));
  }
}
