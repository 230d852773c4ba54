// Contract 5.
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/guard.ts';
import { send } from '../http/answer.ts';
import { LookUp } from './look-up.ts';

@Controller('v4/:project/runs')
@UseGuards(ReadRunsGuard)
export class RunsController {
  constructor(private readonly lookUp: LookUp) {}

  @Get(':run')
  async run(
    @Req() request: FastifyRequest<{ Params: { project: string; run: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const body = await this.lookUp.run(request.params.project, request.params.run);
    send(reply.hijack().raw, request.id, 200, body, { 'cache-control': 'no-store' });
  }
}
