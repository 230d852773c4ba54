// Contract 1, "OpenAI clients": the routes below `base_url = …/v4/{project}/{app}/{function}`.
import { Controller, Get, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CallGuard } from '../auth/tokens.ts';
import { Calls, functionProtocol } from '../calls/calls.ts';
import { send } from '../http/answer.ts';
import type { CallPath } from '../http/request-head.ts';
import { Models } from './models.ts';
import { openAiProtocol } from './openai-protocol.ts';

type CallOfFunction = FastifyRequest<{ Params: CallPath }>;
type ModelOfFunction = FastifyRequest<{ Params: CallPath & { readonly model: string } }>;

const chats = openAiProtocol({ endsByDone: true, merges: 'chat.completion' });
const texts = openAiProtocol({ endsByDone: true, merges: 'text_completion' });
const embeddings = openAiProtocol({ endsByDone: true });
const responses = openAiProtocol({ endsByDone: false });

@Controller('v4/:project/:app/:function')
@UseGuards(CallGuard)
export class OpenAiController {
  readonly #calls: Calls;
  readonly #models: Models;

  constructor(calls: Calls, models: Models) {
    this.#calls = calls;
    this.#models = models;
  }

  @Post('chat/completions')
  chat(@Req() request: CallOfFunction, @Res() reply: FastifyReply): Promise<void> {
    return this.#calls.answer(request, reply, chats);
  }

  @Post('completions')
  complete(@Req() request: CallOfFunction, @Res() reply: FastifyReply): Promise<void> {
    return this.#calls.answer(request, reply, texts);
  }

  @Post('embeddings')
  embed(@Req() request: CallOfFunction, @Res() reply: FastifyReply): Promise<void> {
    return this.#calls.answer(request, reply, embeddings);
  }

  @Post('responses')
  respond(@Req() request: CallOfFunction, @Res() reply: FastifyReply): Promise<void> {
    return this.#calls.answer(request, reply, responses);
  }

  @Get('models')
  async list(@Req() request: CallOfFunction, @Res() reply: FastifyReply): Promise<void> {
    if ((await this.#calls.kindOf(request.params)) === 'server')
      return this.#calls.answer(request, reply, functionProtocol);
    const body = await this.#models.list(request.params);
    reply.hijack();
    send(reply.raw, request.id, 200, body);
  }

  @Get('models/:model')
  async describe(@Req() request: ModelOfFunction, @Res() reply: FastifyReply): Promise<void> {
    if ((await this.#calls.kindOf(request.params)) === 'server')
      return this.#calls.answer(request, reply, functionProtocol);
    const body = await this.#models.describe(request.params, request.params.model);
    reply.hijack();
    send(reply.raw, request.id, 200, body);
  }
}
