// Contract 6: `GET /docs`, the page over the OpenAPI documents. The page needs no token. A person pastes one into it.
import { Controller, Get, NotFoundException, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DocsFiles } from './docs-files.ts';
import { answerFile } from './page-answer.ts';

@Controller('docs')
export class DocsController {
  readonly #files: DocsFiles;

  constructor(files: DocsFiles) {
    this.#files = files;
  }

  @Get()
  page(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.#answer('', request, reply);
  }

  @Get(':file')
  file(@Req() request: FastifyRequest<{ Params: { file: string } }>, @Res() reply: FastifyReply): Promise<void> {
    return this.#answer(request.params.file, request, reply);
  }

  async #answer(name: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const found = await this.#files.file(name);
    if (found === undefined) throw new NotFoundException();
    answerFile(request, reply, found, 'always');
  }
}
