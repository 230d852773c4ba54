// Contract 5: the routes that read runs.
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { send } from '../http/answer.ts';
import { AnswersInFlight } from '../http/answers-in-flight.ts';
import type { RunPath } from '../http/request-head.ts';
import { Query } from '../http/request-head.ts';
import { sendBody } from '../http/stored-answer.ts';
import { RunList } from './list.ts';
import { RunLogs } from './logs.ts';
import { LookUp } from './look-up.ts';

@Controller('v4/:project/runs')
@UseGuards(ReadRunsGuard)
export class RunsController {
  readonly #runList: RunList;
  readonly #lookUp: LookUp;
  readonly #runLogs: RunLogs;
  readonly #answers: AnswersInFlight;

  constructor(runList: RunList, lookUp: LookUp, runLogs: RunLogs, answers: AnswersInFlight) {
    this.#runList = runList;
    this.#lookUp = lookUp;
    this.#runLogs = runLogs;
    this.#answers = answers;
  }

  @Get()
  async list(
    @Req() request: FastifyRequest<{ Params: Pick<RunPath, 'project'> }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const body = await this.#runList.page(request.params.project, Query.of(request.url));
    send(reply.hijack().raw, request.id, 200, body, { 'cache-control': 'no-store' });
  }

  @Get(':run')
  async run(@Req() request: FastifyRequest<{ Params: RunPath }>, @Res() reply: FastifyReply): Promise<void> {
    const body = await this.#lookUp.run(request.params.project, request.params.run);
    await sendBody(this.#answers, reply.hijack().raw, request.id, 200, body, { 'cache-control': 'no-store' });
  }

  /** Takes the raw request and reply, because followed logs are written while they arrive. */
  @Get(':run/logs')
  logs(@Req() request: FastifyRequest<{ Params: RunPath }>, @Res() reply: FastifyReply): Promise<void> {
    return this.#runLogs.answer(request, reply);
  }
}
