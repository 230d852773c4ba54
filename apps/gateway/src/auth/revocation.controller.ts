// Contract 6, "Tokens": `DELETE /tokens/{jti}` revokes a token, `DELETE /tokens?sub=` all tokens of a subject that were issued so far.
import { ServiceError } from '@inference-proxy/contracts';
import type { Logger } from '@inference-proxy/platform';
import { GatewayStore, type Revoked } from '@inference-proxy/store';
import { Controller, Delete, HttpCode, Inject, Req, UseGuards } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { checkProject } from '../http/not-found.ts';
import { readQuery } from '../http/query.ts';
import { Query } from '../http/request-head.ts';
import { isoTime, unixSeconds } from '../http/values.ts';
import { grantOf, WriteTokensGuard } from './tokens.ts';

/** RFC 7519 sets no bound. Real names are shorter. */
const LONGEST_NAME = 256;
const name = z.string().min(1, 'is empty').max(LONGEST_NAME, `is longer than ${LONGEST_NAME} characters`);

/** `exp` is the expiry of the token. */
const ONE = z.object({ exp: unixSeconds });
const OF_SUBJECT = z.object({ sub: name, exp: unixSeconds });

/** How long a revocation is kept if the `exp` of its token is unknown, ms. */
export const REVOCATION_RETENTION = Symbol('REVOCATION_RETENTION_S');
export const REVOCATION_LOGGER = Symbol('logger of revocations');

type ProjectRequest = FastifyRequest<{ Params: { project: string; jti?: string } }>;

@Controller('v4/:project/tokens')
@UseGuards(WriteTokensGuard)
export class RevocationController {
  readonly #store: GatewayStore;
  readonly #retentionMs: number;
  readonly #logger: Logger;

  constructor(
    store: GatewayStore,
    @Inject(REVOCATION_RETENTION) retentionMs: number,
    @Inject(REVOCATION_LOGGER) logger: Logger,
  ) {
    this.#store = store;
    this.#retentionMs = retentionMs;
    this.#logger = logger;
  }

  @Delete(':jti')
  @HttpCode(204)
  async one(@Req() request: ProjectRequest): Promise<void> {
    const query = readQuery(ONE, Query.of(request.url), 'refused');
    const { success, data: jti, error } = name.safeParse(request.params.jti);
    if (!success) throw new ServiceError('invalid_request', `The token's id ${error.issues[0]?.message}.`);
    await this.#revoke(request, { jti }, query.exp);
  }

  @Delete()
  @HttpCode(204)
  async ofSubject(@Req() request: ProjectRequest): Promise<void> {
    const { sub, exp: expires } = readQuery(OF_SUBJECT, Query.of(request.url), 'refused');
    await this.#revoke(request, { sub, issuedUntil: Math.floor(Date.now() / 1000) }, expires);
  }

  /** Revokes for all projects if the caller's token is for all projects, else for the path's project only. */
  async #revoke(request: ProjectRequest, revoked: Revoked, expires: number | undefined): Promise<void> {
    const { project } = request.params;
    checkProject(project);
    const { projects, identity } = grantOf(request);
    const scope = projects.has('*') ? '*' : project;
    const until = expires === undefined ? Date.now() + this.#retentionMs : expires * 1000;
    // An expired token is refused anyway.
    if (until > Date.now()) await this.#store.revocations.revoke(scope, revoked, until);
    this.#logger.info({ project: scope, revoked, until: isoTime(until), by: identity.sub }, 'token revoked');
  }
}
