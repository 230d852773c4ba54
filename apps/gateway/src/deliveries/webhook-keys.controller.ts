// Contract 4, "Signatures": the route `GET /.well-known/webhook-keys`. The keys are public, so the route needs no token.
import { WebhookKeys } from '@inference-proxy/crypto';
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { send } from '../http/answer.ts';

/** A receiver that sees an unknown signature reads the list again. A short time therefore suffices. */
const CACHED = 'public, max-age=300';

@Controller('.well-known/webhook-keys')
export class WebhookKeysController {
  readonly #body: Buffer;

  constructor(keys: WebhookKeys) {
    this.#body = Buffer.from(JSON.stringify({ keys: keys.listed }));
  }

  @Get()
  list(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    send(reply.hijack().raw, request.id, 200, this.#body, { 'cache-control': CACHED });
  }
}
