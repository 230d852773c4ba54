// Contract 5: `GET /runs`, the newest first, in pages.
import { isProjectName, type RunState, ServiceError } from '@inference-proxy/contracts';
import type { GatewayStore, RunQuery } from '@inference-proxy/store';
import { z } from 'zod';
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
const LONGEST_LIMIT = 100;
/** A cursor is short; a filter that is longer than any name finds nothing. */
const LONGEST_VALUE = 512;

const filter = z.string().min(1, 'is empty').max(LONGEST_VALUE, 'is too long').optional();

/** The query's parameters; others are ignored. */
const listQuery = z.object({
  app: filter,
  function: filter,
  status: z.enum(STATES, `must be one of ${STATES.join(', ')}`).optional(),
  limit: z
    .string()
    .prefault('50')
    .refine((text) => /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= LONGEST_LIMIT, {
      error: `must be a whole number from 1 to ${LONGEST_LIMIT}`,
    })
    .transform(Number),
  cursor: filter,
});

/** @throws ServiceError `invalid_request` that says which parameter is wrong */
export function runQueryOf(query: string): RunQuery {
  const parameters = new URLSearchParams(query);
  const doubled = Object.keys(listQuery.shape).find((name) => parameters.getAll(name).length > 1);
  if (doubled !== undefined) throw new ServiceError('invalid_request', `\`${doubled}\` is given more than once.`);
  const { success, data, error } = listQuery.safeParse(Object.fromEntries(parameters));
  if (!success) {
    const [issue] = error.issues;
    throw new ServiceError('invalid_request', `\`${issue?.path.join('.')}\` ${issue?.message}.`);
  }
  const { app, function: fn, status, limit, cursor } = data;
  return {
    limit,
    ...(app !== undefined && { app }),
    ...(fn !== undefined && { fn }),
    ...(status !== undefined && { status }),
    ...(cursor !== undefined && { cursor }),
  };
}

export class RunList {
  constructor(private readonly store: GatewayStore) {}

  /**
   * The answer of `GET /v4/{project}/runs`: a JSON object. A `cursor` in it tells of more, also where a filtered page is short.
   *
   * @throws ServiceError `not_found`, `invalid_request`, `unavailable`
   */
  async page(project: string, query: string): Promise<Buffer> {
    const asked = runQueryOf(query);
    if (!isProjectName(project)) throw new ServiceError('not_found', 'There is no such project.');
    const { runs, cursor } = await this.store.list(project, asked);
    return Buffer.from(JSON.stringify({ runs: runs.map(runView), ...(cursor !== undefined && { cursor }) }));
  }
}
