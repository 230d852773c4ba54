// Contract 5, "Resume: `GET /runs/{run_id}/stream`": the route.
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { type RunPath } from '../http/request-head.ts';
import { Resume } from './resume.ts';

@Controller('v4/:project/runs')
@UseGuards(ReadRunsGuard)
export class ResumeController {
  readonly #resume: Resume;

  constructor(resume: Resume) {
    this.#resume = resume;
  }

  /** Takes the raw request and reply, because the answer is written while it arrives. */
  @Get(':run/stream')
  stream(@Req() request: FastifyRequest<{ Params: RunPath }>, @Res() reply: FastifyReply): Promise<void> {
    return this.#resume.answer(request, reply);
  }
}
