// Contract 5, "Deliveries": the routes that read deliveries.
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { sendCurrent } from '../http/current-answer.ts';
import { Query } from '../http/request-head.ts';
import { Deliveries } from './deliveries.ts';

@Controller('v4/:project')
@UseGuards(ReadRunsGuard)
export class DeliveriesController {
  readonly #deliveries: Deliveries;

  constructor(deliveries: Deliveries) {
    this.#deliveries = deliveries;
  }

  @Get('runs/:run/deliveries')
  async ofRun(
    @Req() request: FastifyRequest<{ Params: { project: string; run: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { project, run } = request.params;
    sendCurrent(request, reply, await this.#deliveries.ofRun(project, run));
  }

  @Get('deliveries')
  async list(
    @Req() request: FastifyRequest<{ Params: { project: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendCurrent(request, reply, await this.#deliveries.list(request.params.project, Query.of(request.url)));
  }

  @Get('deliveries/count')
  async count(
    @Req() request: FastifyRequest<{ Params: { project: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendCurrent(request, reply, await this.#deliveries.count(request.params.project, Query.of(request.url)));
  }
}
