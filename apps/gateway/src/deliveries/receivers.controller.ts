// Contract 5, "Deliveries": the routes that show receivers.
import { isProjectName, ServiceError } from '@inference-proxy/contracts';
import { GatewayStore, type Receiver } from '@inference-proxy/store';
import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { sendCurrent } from '../http/current-answer.ts';
import { noSuchProject } from '../http/not-found.ts';
import { isoTime } from '../http/values.ts';

/** A host name, an IPv4 address or an IPv6 address in brackets, and a port or none. */
const HOST = /^([A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?$/;

@Controller('v4/:project/deliveries/receivers')
@UseGuards(ReadRunsGuard)
export class ReceiversController {
  readonly #store: GatewayStore;

  constructor(store: GatewayStore) {
    this.#store = store;
  }

  @Get()
  async list(
    @Req() request: FastifyRequest<{ Params: { project: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { project } = request.params;
    if (!isProjectName(project)) throw noSuchProject();
    const receivers = await this.#store.receivers.troubled(project);
    sendCurrent(request, reply, { receivers: receivers.map(receiverView) });
  }

  @Get(':host')
  async one(
    @Req() request: FastifyRequest<{ Params: { project: string; host: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { project, host } = request.params;
    if (!isProjectName(project)) throw noSuchProject();
    const [, , port] = HOST.exec(host) ?? [];
    if (!HOST.test(host)) throw new ServiceError('not_found', 'Expected a receiver: a host, or a host and a port.');
    const whole = `${host}${port === undefined ? ':443' : ''}`.toLowerCase();
    sendCurrent(request, reply, receiverView(await this.#store.receivers.one(project, whole)));
  }
}

function receiverView(receiver: Receiver): object {
  const { host, circuit, failuresInARow, probeAt, openAttempts, parked, parkedSince } = receiver;
  return {
    host,
    circuit,
    failures_in_a_row: failuresInARow,
    ...(probeAt !== undefined && { probe_at: isoTime(probeAt) }),
    open_attempts: openAttempts,
    parked,
    ...(parkedSince !== undefined && { oldest_parked_at: isoTime(parkedSince) }),
  };
}
