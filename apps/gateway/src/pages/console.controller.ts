// Contract 6: `GET /console`, the web page of projects. The page needs no token. A person pastes one into it, and the page calls the API.
import { Controller, Get, NotFoundException, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ConsoleFiles, INDEX } from './console-files.ts';
import { answerFile } from './page-answer.ts';

const ASSETS = 'assets/';

@Controller('console')
export class ConsoleController {
  readonly #files: ConsoleFiles;

  constructor(files: ConsoleFiles) {
    this.#files = files;
  }

  @Get(['', '*'])
  async page(@Req() request: FastifyRequest<{ Params: { '*'?: string } }>, @Res() reply: FastifyReply): Promise<void> {
    const name = request.params['*'] ?? '';
    const isAsset = name.startsWith(ASSETS);
    // The page's own routes lie below its path. A missing asset is an error, because a browser would run the page as a script.
    const found = await this.#files.file(isAsset ? name : INDEX);
    if (found === undefined) throw new NotFoundException();
    answerFile(request, reply, found, isAsset ? 'forever' : 'always');
  }
}
