// Contract 1: `base_url = …/v4/{project}/{app}/{function}` as the base URL of an OpenAI client.
import { Controller, Get, HttpCode, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CallGuard } from '../auth/guard.ts';
import { Calls } from '../calls/answer.ts';
import type { CallPath } from '../calls/call-request.ts';
import { send } from '../http/answer.ts';
import { Models } from './models.ts';
import { openAiSurface } from './openai-surface.ts';

type CallOfFunction = FastifyRequest<{ Params: CallPath }>;

const byDone = openAiSurface(true);
const byItself = openAiSurface(false);

@Controller('v4/:project/:app/:function')
@UseGuards(CallGuard)
export class OpenAiController {
  constructor(
    private readonly calls: Calls,
    private readonly models: Models,
  ) {}

  @Post(['chat/completions', 'completions', 'embeddings'])
  @HttpCode(200)
  call(@Req() request: CallOfFunction, @Res() reply: FastifyReply): Promise<void> {
    return this.calls.answer(request, reply, byDone);
  }

  @Post('responses')
  @HttpCode(200)
  respond(@Req() request: CallOfFunction, @Res() reply: FastifyReply): Promise<void> {
    return this.calls.answer(request, reply, byItself);
  }

  @Get('models')
  async list(@Req() request: CallOfFunction, @Res() reply: FastifyReply): Promise<void> {
    if ((await this.calls.kindOf(request.params)) === 'server') return this.calls.answer(request, reply);
    const body = await this.models.list(request.params);
    reply.hijack();
    send(reply.raw, request.id, 200, body);
  }
}
