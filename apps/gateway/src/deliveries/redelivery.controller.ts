// Contract 5, "Deliveries": the routes that redeliver one delivery, or many.
import { Controller, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { WriteRunsGuard } from '../auth/tokens.ts';
import { send } from '../http/answer.ts';
import { Query } from '../http/request-head.ts';
import { Deliveries } from './deliveries.ts';

@Controller('v4/:project')
@UseGuards(WriteRunsGuard)
export class RedeliveryController {
  readonly #deliveries: Deliveries;

  constructor(deliveries: Deliveries) {
    this.#deliveries = deliveries;
  }

  @Post('runs/:run/deliveries/:delivery/redeliver')
  async one(
    @Req() request: FastifyRequest<{ Params: { project: string; run: string; delivery: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { project, run, delivery } = request.params;
    accepted(request, reply, await this.#deliveries.redeliver(project, run, delivery));
  }

  @Post('deliveries/redeliver')
  async many(
    @Req() request: FastifyRequest<{ Params: { project: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    accepted(request, reply, await this.#deliveries.redeliverAll(request.params.project, Query.of(request.url)));
  }
}

function accepted(request: FastifyRequest, reply: FastifyReply, body: object): void {
  send(reply.hijack().raw, request.id, 202, Buffer.from(JSON.stringify(body)));
}
