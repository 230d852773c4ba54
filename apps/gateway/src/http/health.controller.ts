// Contract 6: reports whether the gateway is alive, and whether it is ready. Both pages need no token.
import { ServiceError } from '@inference-proxy/contracts';
import { GatewayStore } from '@inference-proxy/store';
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { send } from './answer.ts';
import { OpenCalls } from './open-calls.ts';

@Controller()
export class HealthController {
  readonly #store: GatewayStore;
  readonly #openCalls: OpenCalls;

  constructor(store: GatewayStore, openCalls: OpenCalls) {
    this.#store = store;
    this.#openCalls = openCalls;
  }

  @Get('healthz')
  alive(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    send(reply.hijack().raw, request.id, 200, Buffer.from('{"status":"alive"}'));
  }

  @Get('readyz')
  async ready(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (this.#openCalls.leaving) throw new ServiceError('unavailable', 'This gateway is stopping.');
    // The reason may quote Redis. Only the operations port shows it, because callers do not reach that port.
    if ((await this.#store.notReadyReason()) !== undefined)
      throw new ServiceError('unavailable', 'The run store does not answer or refuses commands.');
    send(reply.hijack().raw, request.id, 200, Buffer.from('{"status":"ready"}'));
  }
}
