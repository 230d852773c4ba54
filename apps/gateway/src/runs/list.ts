// Contract 5, "List: `GET /runs`": lists runs in pages, newest first.
import { isProjectName, type RunState, ServiceError } from '@inference-proxy/contracts';
import type { GatewayStore, RunQuery } from '@inference-proxy/store';
import { z } from 'zod';
import { filterWord, paging, readQuery } from '../http/query.ts';
import { runView } from './run-view.ts';

const STATES = [
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'timed_out',
  'expired',
] as const satisfies readonly RunState[];

const listQuery = z.object({
  app: filterWord,
  function: filterWord,
  status: z.enum(STATES, `must be one of ${STATES.join(', ')}`).optional(),
  ...paging,
});

/** Reads the filters of a query. @throws ServiceError `invalid_request` that names the wrong parameter */
export function runQueryOf(query: string): RunQuery {
  const { app, function: fn, status, limit, cursor } = readQuery(listQuery, query, 'ignored');
  return {
    limit,
    ...(app !== undefined && { app }),
    ...(fn !== undefined && { fn }),
    ...(status !== undefined && { status }),
    ...(cursor !== undefined && { cursor }),
  };
}

export class RunList {
  readonly #store: GatewayStore;

  constructor(store: GatewayStore) {
    this.#store = store;
  }

  /**
   * Returns the answer of `GET /v4/{project}/runs`: a JSON object. Its `cursor` means that more runs exist, even if a filtered page is short.
   *
   * @throws ServiceError `not_found`, `invalid_request`, `unavailable`
   */
  async page(project: string, query: string): Promise<Buffer> {
    const asked = runQueryOf(query);
    if (!isProjectName(project)) throw new ServiceError('not_found', 'There is no such project.');
    const { runs, cursor } = await this.#store.list(project, asked);
    return Buffer.from(JSON.stringify({ runs: runs.map(runView), ...(cursor !== undefined && { cursor }) }));
  }
}
