// Contract 7, "Secrets": the routes of an app's secrets. All need the scope `apps:write`.
import { Controller, Delete, Get, Put, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { grantOf, WriteAppsGuard } from '../auth/tokens.ts';
import { send, sendNothing } from '../http/answer.ts';
import { Audit, type AuditAction } from './audit.ts';
import { AppSecrets, type SecretPath } from './secrets.ts';

type SecretRequest = FastifyRequest<{ Params: SecretPath }>;

@Controller('v4/:project/apps/:app/secrets')
@UseGuards(WriteAppsGuard)
export class SecretsController {
  readonly #secrets: AppSecrets;
  readonly #audit: Audit;

  constructor(secrets: AppSecrets, audit: Audit) {
    this.#secrets = secrets;
    this.#audit = audit;
  }

  @Get()
  async list(@Req() request: SecretRequest, @Res() reply: FastifyReply): Promise<void> {
    const { project, app } = request.params;
    const body = Buffer.from(JSON.stringify(await this.#secrets.list(project, app)));
    send(reply.hijack().raw, request.id, 200, body, { 'cache-control': 'no-store' });
  }

  @Put(':name')
  async set(@Req() request: SecretRequest, @Res() reply: FastifyReply): Promise<void> {
    const { raw } = reply.hijack();
    await this.#secrets.set(request.params, raw);
    await this.#record(request, 'secret.set');
    sendNothing(raw, request.id);
  }

  @Delete(':name')
  async remove(@Req() request: SecretRequest, @Res() reply: FastifyReply): Promise<void> {
    const { raw } = reply.hijack();
    await this.#secrets.remove(request.params);
    await this.#record(request, 'secret.unset');
    sendNothing(raw, request.id);
  }

  #record(request: SecretRequest, action: AuditAction): Promise<void> {
    const { project, app, name } = request.params;
    const { sub } = grantOf(request).identity;
    return this.#audit.record(request.raw, { project, sub, action, target: `${app}/${name}` });
  }
}
