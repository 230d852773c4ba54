// Contract 5, "List: `GET /runs`": lists runs in pages, newest first.
import type { RunState } from '@inference-proxy/contracts';
import type { GatewayStore, RunQuery, WebhookFilter } from '@inference-proxy/store';
import { z } from 'zod';
import { checkProject } from '../http/not-found.ts';
import { readQuery } from '../http/query.ts';
import type { Query } from '../http/request-head.ts';
import { filterOf, filterWord, paging, time } from '../http/values.ts';
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

const WEBHOOKS = [
  'none',
  'any',
  'waiting',
  'pending',
  'delivered',
  'failed',
] as const satisfies readonly WebhookFilter[];

const listQuery = z.object({
  app: filterWord,
  function: filterWord,
  status: filterOf(STATES),
  webhook: filterOf(WEBHOOKS),
  since: time,
  until: time,
  ...paging,
});

/** Reads the filters of a query. @throws ServiceError `invalid_request` that names the wrong parameter */
export function runQueryOf(query: Query): RunQuery {
  const { app, function: fn, status, webhook, since, until, limit, cursor } = readQuery(listQuery, query, 'ignored');
  return {
    limit,
    ...(app !== undefined && { app }),
    ...(fn !== undefined && { fn }),
    ...(status !== undefined && { status }),
    ...(webhook !== undefined && { webhook }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
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
  async page(project: string, query: Query): Promise<Buffer> {
    const asked = runQueryOf(query);
    checkProject(project);
    const { runs, cursor } = await this.#store.list(project, asked);
    return Buffer.from(JSON.stringify({ runs: runs.map(runView), ...(cursor !== undefined && { cursor }) }));
  }
}
