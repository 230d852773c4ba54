// Contract 6: alive, and able to serve. Neither needs a token.
import { ServiceError } from '@inference-proxy/contracts';
import { GatewayStore } from '@inference-proxy/store';
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OpenCalls } from '../calls/departure.ts';
import { send } from './answer.ts';

@Controller()
export class HealthController {
  constructor(
    private readonly store: GatewayStore,
    private readonly openCalls: OpenCalls,
  ) {}

  @Get('healthz')
  alive(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    send(reply.hijack().raw, request.id, 200, Buffer.from('{"status":"alive"}'));
  }

  @Get('readyz')
  async ready(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (this.openCalls.leaving) throw new ServiceError('unavailable', 'This gateway is stopping.');
    // The reason may quote Redis. It is on the operations port, which callers do not reach.
    if ((await this.store.trouble()) !== undefined)
      throw new ServiceError('unavailable', 'The run store does not answer or refuses commands.');
    send(reply.hijack().raw, request.id, 200, Buffer.from('{"status":"ready"}'));
  }
}
