// Contract 1 and 2: the route of function calls, and their protocol.
import { errorObject } from '@inference-proxy/contracts';
import { Controller, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CallGuard } from '../auth/tokens.ts';
import type { CallPath } from '../http/request-head.ts';
import type { CallProtocol } from './call-protocol.ts';
import { answeredByMedia, callRequest, parametersOf } from './call-request.ts';
import { Calls } from './calls.ts';
import { envelopeAnswer } from './outcome.ts';

/** A JSON object of parameters is answered with the envelope. */
export const functionProtocol: CallProtocol = {
  readHead: (runId, path, head, webhooks) => callRequest(runId, path, head, webhooks, true),
  checkBody: parametersOf,
  readBody: (call, app, { bytes, value }) => ({
    call: answeredByMedia(call, app.functions),
    params: bytes,
    ...(value && { value }),
  }),
  answer: envelopeAnswer,
  error: errorObject,
};

@Controller('v4/:project/:app')
@UseGuards(CallGuard)
export class CallsController {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Takes the raw request and reply: the body's bytes are forwarded unparsed, and the answer is written while it arrives. */
  @Post(':function')
  call(@Req() request: FastifyRequest<{ Params: CallPath }>, @Res() reply: FastifyReply): Promise<void> {
    return this.#calls.answer(request, reply, functionProtocol);
  }
}
