// Contract 1, "Custom runtimes": the route for any method and any path below the app that no other route takes.
import { isAppName } from '@inference-proxy/contracts';
import { All, Controller, NotFoundException, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CallGuard } from '../auth/tokens.ts';
import { Calls, functionProtocol } from '../calls/calls.ts';
import { noSuchApp } from '../http/not-found.ts';
import type { CallPath } from '../http/request-head.ts';
import { serverTarget } from './server-target.ts';

@Controller('v4/:project/:app')
@UseGuards(CallGuard)
export class PassthroughController {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Takes the raw request and reply: the body's bytes and the answer are forwarded unchanged while they arrive. */
  @All(['', '*'])
  async forward(@Req() request: FastifyRequest<{ Params: CallPath }>, @Res() reply: FastifyReply): Promise<void> {
    const { params, url } = request;
    const { project, app } = params;
    const kind = await this.#calls.kindOf(params);
    if (kind === undefined && isAppName(app)) throw noSuchApp(app);
    // An app with functions has no such path or method.
    if (kind !== 'server') throw new NotFoundException();
    request.params = { project, app, function: serverTarget(url).name };
    return this.#calls.answer(request, reply, functionProtocol);
  }
}
