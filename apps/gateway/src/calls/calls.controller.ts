// Contract 1.
import { Controller, HttpCode, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CallGuard } from '../auth/guard.ts';
import { Calls } from './answer.ts';
import type { CallPath } from './call-request.ts';

@Controller('v4/:project/:app')
@UseGuards(CallGuard)
export class CallsController {
  constructor(private readonly calls: Calls) {}

  /** Takes the raw pair: the body's bytes are forwarded, not parsed, and the answer is written as it comes. */
  @Post(':function')
  @HttpCode(200)
  call(@Req() request: FastifyRequest<{ Params: CallPath }>, @Res() reply: FastifyReply): Promise<void> {
    return this.calls.answer(request, reply);
  }
}
