// Contract 6: `GET /openapi.json` needs no token. `GET /openapi/{project}/{app}.json` needs the token of a caller.
import { ServiceError } from '@inference-proxy/contracts';
import { Controller, Get, NotFoundException, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ReadRunsGuard } from '../auth/tokens.ts';
import { Admission } from '../calls/admission.ts';
import { send } from '../http/answer.ts';
import { noSuchApp } from '../http/not-found.ts';
import { appDocument } from './app-document.ts';
import { serviceDocument } from './service-document.ts';

const SERVICE = Buffer.from(JSON.stringify(serviceDocument));
const SUFFIX = '.json';

@Controller()
export class ServiceDocumentController {
  @Get('openapi.json')
  service(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    send(reply.hijack().raw, request.id, 200, SERVICE, { 'cache-control': 'no-cache' });
  }
}

@Controller('openapi/:project')
@UseGuards(ReadRunsGuard)
export class AppDocumentController {
  readonly #admission: Admission;

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  /** @throws ServiceError `not_found`, `app_failed_to_start`, `unavailable` */
  @Get(':file')
  async app(
    @Req() request: FastifyRequest<{ Params: { project: string; file: string } }>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { project, file } = request.params;
    if (!file.endsWith(SUFFIX)) throw new NotFoundException();
    const name = file.slice(0, -SUFFIX.length);
    const found = await this.#admission.find({ project, app: name });
    if (found === undefined) throw noSuchApp(name);
    if (found.state === 'broken')
      throw new ServiceError('app_failed_to_start', found.error?.message ?? 'The app could not be started.');
    const body = Buffer.from(JSON.stringify(appDocument(project, found)));
    send(reply.hijack().raw, request.id, 200, body, { 'cache-control': 'no-store' });
  }
}
