// Contract 6: `GET /docs`, the page over the OpenAPI documents. The page needs no token. A person pastes one into it.
import { Controller, Get, NotFoundException, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SERVER, send } from '../http/answer.ts';
import { accepts } from '../http/request-head.ts';
import { PageFiles } from './page-files.ts';

/** The page runs only the files of this service, and sends a token only to this service. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
  vary: 'Accept-Encoding',
};

@Controller('docs')
export class DocsController {
  readonly #files: PageFiles;

  constructor(files: PageFiles) {
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
    const { type, etag, bytes, gzipped } = found;
    const { raw } = reply.hijack();
    const headers = { ...HEADERS, etag };
    if (request.headers['if-none-match'] === etag) {
      raw.writeHead(304, { ...headers, 'x-request-id': request.id, server: SERVER }).end();
      return;
    }
    const isGzipped = accepts(request.headers['accept-encoding'], ['gzip', 'x-gzip', '*']);
    send(raw, request.id, 200, isGzipped ? gzipped : bytes, {
      ...headers,
      'content-type': type,
      ...(isGzipped && { 'content-encoding': 'gzip' }),
    });
  }
}
