// Contract 5, "Cancel: `POST /runs/{run_id}/cancel`".
import { ServiceError } from '@inference-proxy/contracts';
import { GatewayStore } from '@inference-proxy/store';
import { Controller, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { WriteRunsGuard } from '../auth/tokens.ts';
import { send } from '../http/answer.ts';
import { ofRun } from '../http/not-found.ts';

@Controller('v4/:project/runs')
@UseGuards(WriteRunsGuard)
export class CancelController {
  readonly #store: GatewayStore;

  constructor(store: GatewayStore) {
    this.#store = store;
  }

  /** Answers 202: the cancel is requested. A queued run has ended then. A running run is interrupted, and may still succeed first. */
  @Post(':run/cancel')
  async cancel(
    @Req() request: FastifyRequest<{ Params: { project: string; run: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { project, run: runId } = request.params;
    const found = await ofRun(project, runId, async () => {
      const answer = await this.#store.cancel(project, runId);
      return answer === 'unknown' ? undefined : answer;
    });
    if (found === 'ended') throw new ServiceError('conflict', 'The run has ended already.', { runId });
    const status = found === 'queued' ? 'cancelled' : 'running';
    send(reply.hijack().raw, request.id, 202, Buffer.from(JSON.stringify({ run_id: runId, status })), {
      location: `/v4/${project}/runs/${runId}`,
    });
  }
}
