// Contract 5: the routes that read runs.
import { GatewayStore } from '@inference-proxy/store';
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { send } from '../http/answer.ts';
import { AnswersInFlight } from '../http/answers-in-flight.ts';
import { sendCurrent } from '../http/current-answer.ts';
import type { RunPath } from '../http/request-head.ts';
import { Query } from '../http/request-head.ts';
import { sendBody } from '../http/stored-answer.ts';
import { RunList } from './list.ts';
import { RunLogs } from './logs.ts';
import { LookUp } from './look-up.ts';
import { parametersOfRun } from './parameters.ts';

@Controller('v4/:project/runs')
@UseGuards(ReadRunsGuard)
export class RunsController {
  readonly #runList: RunList;
  readonly #lookUp: LookUp;
  readonly #runLogs: RunLogs;
  readonly #answers: AnswersInFlight;
  readonly #store: GatewayStore;

  constructor(runList: RunList, lookUp: LookUp, runLogs: RunLogs, answers: AnswersInFlight, store: GatewayStore) {
    this.#runList = runList;
    this.#lookUp = lookUp;
    this.#runLogs = runLogs;
    this.#answers = answers;
    this.#store = store;
  }

  @Get()
  async list(
    @Req() request: FastifyRequest<{ Params: Pick<RunPath, 'project'> }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendCurrent(request, reply, await this.#runList.page(request.params.project, Query.of(request.url)));
  }

  @Get(':run')
  async run(@Req() request: FastifyRequest<{ Params: RunPath }>, @Res() reply: FastifyReply): Promise<void> {
    const body = await this.#lookUp.run(request.params.project, request.params.run);
    await sendBody(this.#answers, reply.hijack().raw, request.id, 200, body, { 'cache-control': 'no-store' });
  }

  @Get(':run/parameters')
  async parameters(@Req() request: FastifyRequest<{ Params: RunPath }>, @Res() reply: FastifyReply): Promise<void> {
    const { form, body } = await parametersOfRun(this.#store, request.params.project, request.params.run);
    send(reply.hijack().raw, request.id, 200, body, { 'cache-control': 'no-store', 'x-parameters': form });
  }

  /** Takes the raw request and reply, because followed logs are written while they arrive. */
  @Get(':run/logs')
  logs(@Req() request: FastifyRequest<{ Params: RunPath }>, @Res() reply: FastifyReply): Promise<void> {
    return this.#runLogs.answer(request, reply);
  }
}
