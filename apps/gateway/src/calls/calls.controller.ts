// Contract 1: the route of function calls.
import { Controller, HttpCode, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CallGuard } from '../auth/guard.ts';
import type { CallPath } from './call-request.ts';
import { Calls } from './calls.ts';

@Controller('v4/:project/:app')
@UseGuards(CallGuard)
export class CallsController {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Takes the raw request and reply: the body's bytes are forwarded unparsed, and the answer is written while it arrives. */
  @Post(':function')
  @HttpCode(200)
  call(@Req() request: FastifyRequest<{ Params: CallPath }>, @Res() reply: FastifyReply): Promise<void> {
    return this.#calls.answer(request, reply);
  }
}
